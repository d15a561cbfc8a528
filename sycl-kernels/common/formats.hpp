// Weight formats in the packed device layout (docs/formats.md). A tile is 16 rows; a lane owns a row. A tile is a run
// of units of 32 or 256 columns; a unit is `words` planes of 16 32-bit words, then, for quantised formats, one plane of
// 16 f16 scales per scale.
#pragma once
#include "math.hpp"

// Sum of four int8 products. Code for cards names the operation, which the driver resolves: the B70's compiler does not
// always find it in shifts (docs/kernels.md). On the CPU the name is slower than shifts.
#if defined(XK_CARD) && defined(__SYCL_DEVICE_ONLY__) && !defined(__NVPTX__)
SYCL_EXTERNAL int dot_4x8packed_ss_int(unsigned a, unsigned b);
static inline int xk_dot4(int a, int b) { return dot_4x8packed_ss_int((unsigned)a, (unsigned)b); }
#else
static inline int xk_dot4(int a, int b) {
    return (int)(int8_t)a * (int)(int8_t)b + (int)(int8_t)(a >> 8) * (int)(int8_t)(b >> 8) +
           (int)(int8_t)(a >> 16) * (int)(int8_t)(b >> 16) + (a >> 24) * (b >> 24);
}
#endif
static inline float xk_half_to_float(uint16_t h) { return (float)sycl::bit_cast<sycl::half>(h); }
// Four bytes, each 0..127, minus c each; c <= 128 and no byte crosses its neighbour.
static inline int xk_sub_bytes(uint32_t v, uint32_t c4) { return (int)(((v | 0x80808080u) - c4) ^ 0x80808080u); }
// Negates byte i of v (all bytes non-zero) where bit i of the low nibble of s is set.
static inline int xk_sign_bytes(uint32_t v, uint32_t s) {
    uint32_t m = ((s & 15u) * 0x00204081u) & 0x01010101u;
    return (int)((v ^ (m * 255u)) + m);
}

// Each format gives: kUnit columns per unit, kUnitBytes, and, for a 32-column block `g` of a unit at `u`, `load`, which
// leaves the block's integers in w[8] with the scales the integer sums are multiplied by, and `finish`, which does
// that.
struct xk_block {
    int w[8];    // 32 int8 weights
    int s0, s1;  // multipliers of elements 0..15 and 16..31
    int m;       // multiplier of the sum of activations
    float d, mw; // N4: dw and mw
};

#define XK_F32 0
#define XK_F16 1
#define XK_BF16 2
#define XK_Q8_0 3
#define XK_Q4_0 4
#define XK_Q5_K 5
#define XK_Q6_K 6
#define XK_IQ4_NL 7
#define XK_IQ2_S 8
#define XK_IQ3_S 9
#define XK_IQ3_XXS 10

template <int F> struct xk_format;

static inline uint32_t xk_word(const uint32_t *u, int i, int lane) { return u[i * 16 + lane]; }
static inline float xk_scale(const uint32_t *u, int words, int i, int lane) {
    return xk_half_to_float(((const uint16_t *)(u + words * 16))[i * 16 + lane]);
}

template <> struct xk_format<XK_Q8_0> {
    static constexpr int unit = 32, words = 8, scales = 1;
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 8; i++)
            b.w[i] = (int)xk_word(u, i, lane);
        b.d = xk_scale(u, words, 0, lane);
    }
    static constexpr bool two_scales = false, has_min = false, one_scale = false;
};

template <> struct xk_format<XK_Q4_0> {
    static constexpr int unit = 32, words = 4, scales = 1;
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t v = xk_word(u, i, lane);
            b.w[i] = xk_sub_bytes(v & 0x0F0F0F0Fu, 0x08080808u);
            b.w[4 + i] = xk_sub_bytes((v >> 4) & 0x0F0F0F0Fu, 0x08080808u);
        }
        b.d = xk_scale(u, words, 0, lane);
    }
    static constexpr bool two_scales = false, has_min = false, one_scale = false;
};

template <> struct xk_format<XK_IQ4_NL> {
    static constexpr int unit = 32, words = 4, scales = 1;
    // The table's entry for a byte holds the value of its low nibble in bits 0..7 and of its high nibble in
    // bits 16..23.
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *table, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t v = xk_word(u, i, lane);
            uint32_t e0 = table[v & 255u], e1 = table[(v >> 8) & 255u], e2 = table[(v >> 16) & 255u],
                     e3 = table[v >> 24];
            uint32_t a = e0 | (e1 << 8), c = e2 | (e3 << 8);
            b.w[i] = (int)((a & 0xFFFFu) | (c << 16));
            b.w[4 + i] = (int)((a >> 16) | (c & 0xFFFF0000u));
        }
        b.d = xk_scale(u, words, 0, lane);
    }
    static constexpr bool two_scales = false, has_min = false, one_scale = false;
};

template <> struct xk_format<XK_Q6_K> {
    static constexpr int unit = 256, words = 52, scales = 1;
    // Words: 32 of nibbles (4 a block), 16 of high bit pairs (2 a block), 4 of int8 scales (two a block).
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t hi = xk_word(u, 32 + 2 * g + h, lane);
#pragma unroll
            for (int k = 0; k < 2; k++) {
                int i = 2 * h + k;
                uint32_t v = xk_word(u, 4 * g + i, lane);
                uint32_t lo_hi = (hi >> (4 * k)) & 0x03030303u, hi_hi = (hi >> (4 * k + 2)) & 0x03030303u;
                b.w[i] = xk_sub_bytes((v & 0x0F0F0F0Fu) | (lo_hi << 4), 0x20202020u);
                b.w[4 + i] = xk_sub_bytes(((v >> 4) & 0x0F0F0F0Fu) | (hi_hi << 4), 0x20202020u);
            }
        }
        uint32_t s = xk_word(u, 48 + (g >> 1), lane) >> (16 * (g & 1));
        b.s0 = (int)(int8_t)s;
        b.s1 = (int)(int8_t)(s >> 8);
        b.d = xk_scale(u, words, 0, lane);
    }
    static constexpr bool two_scales = true, has_min = false, one_scale = false;
};

template <> struct xk_format<XK_Q5_K> {
    static constexpr int unit = 256, words = 44, scales = 2;
    // Words: 32 of nibbles (4 a block), 8 of fifth bits (one a block), 2 of scales, 2 of minimums (a byte a block).
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *, xk_block &b) {
        uint32_t hi = xk_word(u, 32 + g, lane);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t v = xk_word(u, 4 * g + i, lane);
            b.w[i] = (int)((v & 0x0F0F0F0Fu) | (((hi >> (2 * i)) & 0x01010101u) << 4));
            b.w[4 + i] = (int)(((v >> 4) & 0x0F0F0F0Fu) | (((hi >> (2 * i + 1)) & 0x01010101u) << 4));
        }
        b.s0 = (int)((xk_word(u, 40 + (g >> 2), lane) >> (8 * (g & 3))) & 255u);
        b.m = (int)((xk_word(u, 42 + (g >> 2), lane) >> (8 * (g & 3))) & 255u);
        b.d = xk_scale(u, words, 0, lane);
        b.mw = -xk_scale(u, words, 1, lane);
    }
    static constexpr bool two_scales = false, has_min = true, one_scale = true;
};

template <> struct xk_format<XK_IQ2_S> {
    static constexpr int unit = 256, words = 20, scales = 1;
    // Words: 8 of indices, 8 of signs (one a block), 2 of index high bits, 2 of scales (a byte a block). Table: 1024
    // rows of two words.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t idx = xk_word(u, g, lane), sign = xk_word(u, 8 + g, lane);
        uint32_t qh = xk_word(u, 16 + (g >> 2), lane) >> (8 * (g & 3));
        uint32_t sc = xk_word(u, 18 + (g >> 2), lane) >> (8 * (g & 3));
#pragma unroll
        for (int t = 0; t < 4; t++) {
            uint32_t row = ((idx >> (8 * t)) & 255u) | (((qh >> (2 * t)) & 3u) << 8);
            b.w[2 * t] = xk_sign_bytes(table[2 * row], sign >> (8 * t));
            b.w[2 * t + 1] = xk_sign_bytes(table[2 * row + 1], sign >> (8 * t + 4));
        }
        b.s0 = (int)(2u * (sc & 15u) + 1u);
        b.s1 = (int)(2u * ((sc >> 4) & 15u) + 1u);
        b.d = xk_scale(u, words, 0, lane) * 0.125f;
    }
    static constexpr bool two_scales = true, has_min = false, one_scale = false;
};

template <> struct xk_format<XK_IQ3_S> {
    static constexpr int unit = 256, words = 27, scales = 1;
    // Words: 16 of indices (two a block), 8 of signs (one a block), 2 of index high bits (a byte a block), 1 of scales
    // (a nibble a block). Table: 512 words.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t sign = xk_word(u, 16 + g, lane);
        uint32_t qh = xk_word(u, 24 + (g >> 2), lane) >> (8 * (g & 3));
        uint32_t sc = xk_word(u, 26, lane) >> (4 * g);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t idx = xk_word(u, 2 * g + h, lane);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int i = 4 * h + k;
                uint32_t row = ((idx >> (8 * k)) & 255u) | (((qh >> i) & 1u) << 8);
                b.w[i] = xk_sign_bytes(table[row], sign >> (4 * i));
            }
        }
        b.s0 = (int)(2u * (sc & 15u) + 1u);
        b.d = xk_scale(u, words, 0, lane);
    }
    static constexpr bool two_scales = false, has_min = false, one_scale = true;
};

template <> struct xk_format<XK_IQ3_XXS> {
    static constexpr int unit = 256, words = 24, scales = 1;
    // Words: 16 of indices (two a block), 8 of four 7-bit sign masks and a 4-bit scale (one a block). Table: 256 words.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *table, xk_block &b) {
        uint32_t ws = xk_word(u, 16 + g, lane);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t idx = xk_word(u, 2 * g + h, lane);
#pragma unroll
            for (int t = 0; t < 2; t++) {
                uint32_t s7 = (ws >> (7 * (2 * h + t))) & 127u;
                uint32_t p = s7 ^ (s7 >> 4);
                p ^= p >> 2;
                p ^= p >> 1;
                uint32_t s8 = s7 | ((p & 1u) << 7);
                int i = 4 * h + 2 * t;
                b.w[i] = xk_sign_bytes(table[(idx >> (16 * t)) & 255u], s8);
                b.w[i + 1] = xk_sign_bytes(table[(idx >> (16 * t + 8)) & 255u], s8 >> 4);
            }
        }
        b.s0 = (int)(2u * (ws >> 28) + 1u);
        b.d = xk_scale(u, words, 0, lane) * 0.25f;
    }
    static constexpr bool two_scales = false, has_min = false, one_scale = true;
};

// Float weights: 32 columns a unit.
template <> struct xk_format<XK_F32> {
    static constexpr int unit = 32, words = 32, scales = 0;
    static inline float at(const uint32_t *u, int k, int lane) { return xk_bits_to_float(xk_word(u, k, lane)); }
};
template <> struct xk_format<XK_F16> {
    static constexpr int unit = 32, words = 16, scales = 0;
    static inline float at(const uint32_t *u, int k, int lane) {
        return xk_half_to_float((uint16_t)(xk_word(u, k >> 1, lane) >> (16 * (k & 1))));
    }
};
template <> struct xk_format<XK_BF16> {
    static constexpr int unit = 32, words = 16, scales = 0;
    static inline float at(const uint32_t *u, int k, int lane) {
        return xk_bits_to_float((xk_word(u, k >> 1, lane) >> (16 * (k & 1))) << 16);
    }
};
