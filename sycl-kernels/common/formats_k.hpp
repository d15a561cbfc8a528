// The formats of 256 columns with scales of 16 or 32 of them. Part of formats.hpp.
#pragma once

// Bit pairs of a block: field f of byte b of word h is that of element 16h + 4f + b.
static inline uint32_t xk_pairs(const uint32_t *pair, int i) { return (pair[i >> 2] >> (2 * (i & 3))) & 0x03030303u; }

template <> struct xk_format<XK_Q2_K> : xk_defaults {
    static constexpr int unit = 256, words = 20, scales = 2;
    static constexpr bool two_scales = true, two_mins = true;
    static constexpr bool unsigned_codes = true;
    static constexpr int code_max = 3;
    // Words: 4 of scales and minimums (a byte a half), then 2 of bit pairs a block.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *, xk_block &b) {
        const uint32_t pair[2] = {xk_word(u, 4 + 2 * g, lane), xk_word(u, 5 + 2 * g, lane)};
#pragma unroll
        for (int i = 0; i < 8; i++)
            b.w[i] = (int)xk_pairs(pair, i);
        uint32_t s = xk_word(u, g >> 1, lane) >> (16 * (g & 1));
        b.s0 = (int)(s & 15u);
        b.s1 = (int)((s >> 8) & 15u);
        b.m = (int)((s >> 4) & 15u);
        b.m1 = (int)((s >> 12) & 15u);
        b.d = xk_scale(u, scales, 0, lane);
        b.mw = -xk_scale(u, scales, 1, lane);
    }
};

template <> struct xk_format<XK_Q3_K> : xk_defaults {
    static constexpr int unit = 256, words = 28, scales = 1;
    static constexpr bool two_scales = true;
    static constexpr bool unsigned_codes = true;
    static constexpr int code_max = 4;
    static constexpr int bias = 4;
    // Words: 4 of int8 scales (two a block), then for a block 2 of bit pairs and 1 of third bits (bit i of byte b for
    // element 4i + b).
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *, xk_block &b) {
        const uint32_t pair[2] = {xk_word(u, 4 + 3 * g, lane), xk_word(u, 5 + 3 * g, lane)};
        uint32_t hi = xk_word(u, 6 + 3 * g, lane);
#pragma unroll
        for (int i = 0; i < 8; i++)
            b.w[i] = (int)(xk_pairs(pair, i) | (((hi >> i) & 0x01010101u) << 2));
        uint32_t s = xk_word(u, g >> 1, lane) >> (16 * (g & 1));
        b.s0 = (int)(int8_t)s;
        b.s1 = (int)(int8_t)(s >> 8);
        b.d = xk_scale(u, scales, 0, lane);
    }
};

template <> struct xk_format<XK_Q4_K> : xk_defaults {
    static constexpr int unit = 256, words = 36, scales = 2;
    static constexpr bool one_scale = true, has_min = true;
    static constexpr bool unsigned_codes = true;
    static constexpr int code_max = 15;
    // Words: 2 of scales, 2 of minimums (a byte a block), then 4 of nibbles a block.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t v = xk_word(u, 4 + 4 * g + i, lane);
            b.w[i] = (int)(v & 0x0F0F0F0Fu);
            b.w[4 + i] = (int)((v >> 4) & 0x0F0F0F0Fu);
        }
        b.s0 = (int)xk_byte(u, 0, g, lane);
        b.m = (int)xk_byte(u, 2, g, lane);
        b.d = xk_scale(u, scales, 0, lane);
        b.mw = -xk_scale(u, scales, 1, lane);
    }
};

template <> struct xk_format<XK_Q5_K> : xk_defaults {
    static constexpr int unit = 256, words = 44, scales = 2;
    static constexpr bool has_min = true, one_scale = true;
    static constexpr bool unsigned_codes = true;
    static constexpr int code_max = 31;
    // Words: 2 of scales, 2 of minimums (a byte a block), then for a block 4 of nibbles and 1 of fifth bits.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *, xk_block &b) {
        uint32_t hi = xk_word(u, 8 + 5 * g, lane);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            xk_five_bits(xk_word(u, 4 + 5 * g + i, lane), hi, i, b.w[i], b.w[4 + i]);
        }
        b.s0 = (int)xk_byte(u, 0, g, lane);
        b.m = (int)xk_byte(u, 2, g, lane);
        b.d = xk_scale(u, scales, 0, lane);
        b.mw = -xk_scale(u, scales, 1, lane);
    }
};

template <> struct xk_format<XK_Q6_K> : xk_defaults {
    static constexpr int unit = 256, words = 52, scales = 1;
    static constexpr bool two_scales = true;
    static constexpr bool unsigned_codes = true;
    static constexpr int code_max = 32;
    static constexpr int bias = 32;
    // Words: 4 of int8 scales (two a block), then for a block 4 of nibbles and 2 of high bit pairs.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t hi = xk_word(u, 8 + 6 * g + h, lane);
#pragma unroll
            for (int k = 0; k < 2; k++) {
                int i = 2 * h + k;
                uint32_t v = xk_word(u, 4 + 6 * g + i, lane);
                uint32_t lo_hi = (hi >> (4 * k)) & 0x03030303u, hi_hi = (hi >> (4 * k + 2)) & 0x03030303u;
                b.w[i] = (int)((v & 0x0F0F0F0Fu) | (lo_hi << 4));
                b.w[4 + i] = (int)(((v >> 4) & 0x0F0F0F0Fu) | (hi_hi << 4));
            }
        }
        uint32_t s = xk_word(u, g >> 1, lane) >> (16 * (g & 1));
        b.s0 = (int)(int8_t)s;
        b.s1 = (int)(int8_t)(s >> 8);
        b.d = xk_scale(u, scales, 0, lane);
    }
};
