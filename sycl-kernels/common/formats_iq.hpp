// The formats of 256 columns whose values come from tables. Part of formats.hpp.
#pragma once

// The top bits of four bytes as a number: the product brings that of byte t to 24 + t.
static inline uint32_t xk_top_bits(uint32_t v) { return (((v >> 7) & 0x01010101u) * 0x01020408u) >> 24; }

// A row of two words.
struct xk_row {
    uint32_t first, second;
    xk_row(const uint32_t *table, uint32_t row) {
        const uint64_t both = ((const uint64_t *)table)[row];
        first = (uint32_t)both;
        second = (uint32_t)(both >> 32);
    }
};

template <> struct xk_format<XK_IQ4_XS> : xk_defaults {
    static constexpr int unit = 256, words = 34, scales = 1;
    static constexpr bool one_scale = true;
    // Words: 2 of int8 scales (one a block), then 4 of nibbles a block. Table: of IQ4_NL.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            xk_levels(xk_word(u, 2 + 4 * g + i, lane), table, b.w[i], b.w[4 + i]);
        b.s0 = (int)(int8_t)xk_byte(u, 0, g, lane);
        b.d = xk_scale(u, scales, 0, lane);
    }
};

template <> struct xk_format<XK_IQ1_S> : xk_defaults {
    static constexpr int unit = 256, words = 12, scales = 1;
    static constexpr bool one_scale = true, has_shift = true;
    static constexpr int code_max = 1;
    // Words: 4 of two halves, one a block: four times 3 index high bits, 3 of the scale, the offset's sign; then 1 of
    // indices a block. Table: 2048 rows of two words.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t idx = xk_word(u, 4 + g, lane), h = xk_word(u, g >> 1, lane) >> (16 * (g & 1));
#pragma unroll
        for (int t = 0; t < 4; t++) {
            uint32_t row = ((idx >> (8 * t)) & 255u) | (((h >> (3 * t)) & 7u) << 8);
            const xk_row entry(table, row);
            b.w[2 * t] = (int)entry.first;
            b.w[2 * t + 1] = (int)entry.second;
        }
        b.s0 = (int)(2u * ((h >> 12) & 7u) + 1u);
        b.m = 1 - (int)((h >> 14) & 2u);
        b.d = xk_scale(u, scales, 0, lane) * 0.125f;
    }
};

template <> struct xk_format<XK_IQ1_M> : xk_defaults {
    static constexpr int unit = 256, words = 14, scales = 1;
    static constexpr bool two_scales = true;
    static constexpr int code_max = 9;
    // Words: 2 of scales (a byte a block), 4 of two halves, one a block, of nibbles: 3 index high bits and the offset's
    // sign; then 1 of indices a block. Table: 2048 rows of two words, a byte 128 + 8 v.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t idx = xk_word(u, 6 + g, lane), h = xk_word(u, 2 + (g >> 1), lane) >> (16 * (g & 1));
        uint32_t sc = xk_byte(u, 0, g, lane);
#pragma unroll
        for (int t = 0; t < 4; t++) {
            uint32_t row = ((idx >> (8 * t)) & 255u) | (((h >> (4 * t)) & 7u) << 8);
            uint32_t offset = (h >> (4 * t)) & 8u ? 0u - 0x01010101u : 0x01010101u;
            const xk_row entry(table, row);
            b.w[2 * t] = (int)((entry.first + offset) ^ 0x80808080u);
            b.w[2 * t + 1] = (int)((entry.second + offset) ^ 0x80808080u);
        }
        b.s0 = (int)(2u * (sc & 15u) + 1u);
        b.s1 = (int)(2u * (sc >> 4) + 1u);
        b.d = xk_scale(u, scales, 0, lane) * 0.125f;
    }
};

template <> struct xk_format<XK_IQ2_XXS> : xk_defaults {
    static constexpr int unit = 256, words = 16, scales = 1;
    static constexpr bool one_scale = true;
    static constexpr int code_max = 43;
    // Words of a block: 1 of indices, 1 of 7-bit sign masks with a bit of the scale above each. Table: 256 rows of two
    // words.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t idx = xk_word(u, 2 * g, lane), ws = xk_word(u, 2 * g + 1, lane), sign = xk_even_signs(ws);
#pragma unroll
        for (int t = 0; t < 4; t++) {
            uint32_t row = (idx >> (8 * t)) & 255u;
            const xk_row entry(table, row);
            b.w[2 * t] = xk_sign_bytes(entry.first, sign >> (8 * t));
            b.w[2 * t + 1] = xk_sign_bytes(entry.second, sign >> (8 * t + 4));
        }
        b.s0 = (int)(2u * xk_top_bits(ws) + 1u);
        b.d = xk_scale(u, scales, 0, lane) * 0.125f;
    }
};

template <> struct xk_format<XK_IQ2_XS> : xk_defaults {
    static constexpr int unit = 256, words = 18, scales = 1;
    static constexpr bool two_scales = true;
    static constexpr int code_max = 43;
    // Words: 2 of scales (a byte a block), then for a block 1 of indices and 1 of 7-bit sign masks with the index's
    // ninth bit above each. Table: 512 rows of two words.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t idx = xk_word(u, 2 + 2 * g, lane), ws = xk_word(u, 3 + 2 * g, lane), sign = xk_even_signs(ws);
        uint32_t sc = xk_byte(u, 0, g, lane);
#pragma unroll
        for (int t = 0; t < 4; t++) {
            uint32_t row = ((idx >> (8 * t)) & 255u) | (((ws >> (8 * t + 7)) & 1u) << 8);
            const xk_row entry(table, row);
            b.w[2 * t] = xk_sign_bytes(entry.first, sign >> (8 * t));
            b.w[2 * t + 1] = xk_sign_bytes(entry.second, sign >> (8 * t + 4));
        }
        b.s0 = (int)(2u * (sc & 15u) + 1u);
        b.s1 = (int)(2u * (sc >> 4) + 1u);
        b.d = xk_scale(u, scales, 0, lane) * 0.125f;
    }
};

template <> struct xk_format<XK_IQ2_S> : xk_defaults {
    static constexpr int unit = 256, words = 20, scales = 1;
    static constexpr bool two_scales = true;
    static constexpr int code_max = 43;
    // Words: 2 of index high bits, 2 of scales (a byte a block), then for a block 1 of indices and 1 of signs. Table:
    // 1024 rows of two words.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t idx = xk_word(u, 4 + 2 * g, lane), sign = xk_word(u, 5 + 2 * g, lane);
        uint32_t qh = xk_word(u, g >> 2, lane) >> (8 * (g & 3));
        uint32_t sc = xk_word(u, 2 + (g >> 2), lane) >> (8 * (g & 3));
#pragma unroll
        for (int t = 0; t < 4; t++) {
            uint32_t row = ((idx >> (8 * t)) & 255u) | (((qh >> (2 * t)) & 3u) << 8);
            const xk_row entry(table, row);
            b.w[2 * t] = xk_sign_bytes(entry.first, sign >> (8 * t));
            b.w[2 * t + 1] = xk_sign_bytes(entry.second, sign >> (8 * t + 4));
        }
        b.s0 = (int)(2u * (sc & 15u) + 1u);
        b.s1 = (int)(2u * ((sc >> 4) & 15u) + 1u);
        b.d = xk_scale(u, scales, 0, lane) * 0.125f;
    }
};

template <> struct xk_format<XK_IQ3_S> : xk_defaults {
    static constexpr int unit = 256, words = 27, scales = 1;
    static constexpr bool one_scale = true;
    static constexpr int code_max = 15;
    // Words: 2 of index high bits (a byte a block), 1 of scales (a nibble a block), then for a block 2 of indices and 1
    // of signs. Table: 512 words.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t sign = xk_word(u, 5 + 3 * g, lane);
        uint32_t qh = xk_word(u, g >> 2, lane) >> (8 * (g & 3));
        uint32_t sc = xk_word(u, 2, lane) >> (4 * g);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t idx = xk_word(u, 3 + 3 * g + h, lane);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int i = 4 * h + k;
                uint32_t row = ((idx >> (8 * k)) & 255u) | (((qh >> i) & 1u) << 8);
                b.w[i] = xk_sign_bytes(table[row], sign >> (4 * i));
            }
        }
        b.s0 = (int)(2u * (sc & 15u) + 1u);
        b.d = xk_scale(u, scales, 0, lane);
    }
};

template <> struct xk_format<XK_IQ3_XXS> : xk_defaults {
    static constexpr int unit = 256, words = 24, scales = 1;
    static constexpr bool one_scale = true;
    static constexpr int code_max = 62;
    // Words of a block: 2 of indices, 1 of 7-bit sign masks with a bit of the scale above each. Table: 256 words.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t ws = xk_word(u, 3 * g + 2, lane), sign = xk_even_signs(ws);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t idx = xk_word(u, 3 * g + h, lane);
#pragma unroll
            for (int t = 0; t < 2; t++) {
                int i = 4 * h + 2 * t;
                b.w[i] = xk_sign_bytes(table[(idx >> (16 * t)) & 255u], sign >> (4 * i));
                b.w[i + 1] = xk_sign_bytes(table[(idx >> (16 * t + 8)) & 255u], sign >> (4 * i + 4));
            }
        }
        b.s0 = (int)(2u * xk_top_bits(ws) + 1u);
        b.d = xk_scale(u, scales, 0, lane) * 0.25f;
    }
};
