// Weight formats in the packed device layout (docs/formats.md). A tile is 16 rows; a lane owns a row. A tile is a run
// of units of 32, 64 or 256 columns; a unit is a plane of 16 scales for each scale, then `words` planes of 16 32-bit
// words: what all blocks of a unit share, then block after block, so that a unit is read from its start to its end.
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
#ifndef XK_CARD
// What the CPU's compiler makes byte and 16-bit instructions of.
typedef short xk_short2 __attribute__((ext_vector_type(2)));
typedef signed char xk_char4 __attribute__((ext_vector_type(4)));
static inline xk_short2 xk_shorts(uint32_t v) { return sycl::bit_cast<xk_short2>(v); }
// Of each byte b where the top bit of m is set, else a.
static inline xk_char4 xk_pick(xk_char4 m, xk_char4 a, xk_char4 b) { return m < (xk_char4)0 ? b : a; }
#endif
// Four bytes, each 0..127, minus c each; c <= 128 and no byte crosses its neighbour.
static inline int xk_sub_bytes(uint32_t v, uint32_t c4) { return (int)(((v | 0x80808080u) - c4) ^ 0x80808080u); }
// Negates byte i of v (all bytes non-zero) where bit i of the low nibble of s is set.
static inline int xk_sign_bytes(uint32_t v, uint32_t s) {
    const uint32_t spread = (s & 15u) * 0x00204081u; // bit i at 8i
#ifdef XK_CARD
    const uint32_t m = spread & 0x01010101u;
    return (int)((v ^ (m * 255u)) + m);
#else
    const xk_char4 bytes = sycl::bit_cast<xk_char4>(v);
    return sycl::bit_cast<int>(xk_pick(sycl::bit_cast<xk_char4>(spread << 7), bytes, -bytes));
#endif
}
// Four masks of seven signs, one a byte, and an eighth that makes the count of each even. The bytes' top bits are free.
static inline uint32_t xk_even_signs(uint32_t v) {
    uint32_t s = v & 0x7F7F7F7Fu, p = s ^ (s >> 4);
    p ^= p >> 2;
    p ^= p >> 1;
    return s | ((p & 0x01010101u) << 7);
}

// Each format gives: `unit` columns, the words and scales of a row in a unit, and, for a 32-column block `g` of a unit
// whose words start at `u`, `load`, which leaves the block's integers in w[8] with what `xk_add_block` multiplies their
// sums by.
struct xk_block {
    int w[8];    // 32 weight codes, a byte each
    int s0, s1;  // multipliers of elements 0..15 and 16..31
    int m, m1;   // multipliers of sums of activations
    float d, mw; // N4: dw and mw
};

// What a format is not unless it says so.
struct xk_defaults {
    static constexpr int scale_bytes = 2;
    static constexpr bool one_scale = false;  // I = s0 * sum
    static constexpr bool two_scales = false; // I = s0 * first half + s1 * second half
    static constexpr bool has_min = false;    // J = m * sum of activations
    static constexpr bool two_mins = false;   // J = m and m1 times those of the halves
    static constexpr bool has_shift = false;  // I = s0 * (8 * sum + m * sum of activations)
    static constexpr bool two_steps = false;  // I = first half, J = second half
    // What every weight code is too large by; taken from the sum, so that the codes stay positive and cheap to widen.
    static constexpr int offset = 0;
    // The same, but taken from each code: sums of 16 activations are not at hand.
    static constexpr int bias = 0;
    // Whether the codes are bytes from 0 up; else they are int8.
    static constexpr bool unsigned_codes = false;
    // No code, less its bias, is further from 0.
    static constexpr int code_max = 128;
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
#define XK_Q4_1 11
#define XK_Q5_0 12
#define XK_Q5_1 13
#define XK_Q2_K 14
#define XK_Q3_K 15
#define XK_Q4_K 16
#define XK_IQ1_S 17
#define XK_IQ1_M 18
#define XK_IQ2_XXS 19
#define XK_IQ2_XS 20
#define XK_IQ4_XS 21
#define XK_MXFP4 22
#define XK_NVFP4 23

template <int F> struct xk_format;

template <class F> constexpr int xk_unit_words() { return F::words * 16 + F::scales * F::scale_bytes * 4; }

// Integer sums of a block's halves. Cards multiply four int8 at a time. The CPU's compiler multiplies 16 bits best:
// bytes are taken apart into the even and the odd ones, and products are added in 16 bits as long as none can overflow.
#if defined(XK_CARD)
template <class F> struct xk_codes {
    int w[8];
    explicit xk_codes(const xk_block &b) {
#pragma unroll
        for (int i = 0; i < 8; i++)
            w[i] = F::bias ? xk_sub_bytes((uint32_t)b.w[i], F::bias * 0x01010101u) : b.w[i];
    }
    void sums(const int *xq, int &i0, int &i1) const {
        i0 = i1 = 0;
#pragma unroll
        for (int i = 0; i < 4; i++)
            i0 += xk_dot4(w[i], xq[i]);
#pragma unroll
        for (int i = 4; i < 8; i++)
            i1 += xk_dot4(w[i], xq[i]);
    }
};
#else
template <class F> struct xk_codes {
    // Words whose products add up in 16 bits: each adds two products to either half.
    static constexpr int fits = 32767 / (2 * 127 * F::code_max);
    static constexpr int run = fits >= 4 ? 4 : fits >= 2 ? 2 : 1;
    xk_short2 even[8], odd[8];
    explicit xk_codes(const xk_block &b) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint32_t v = (uint32_t)b.w[i];
            if constexpr (F::unsigned_codes) {
                even[i] = xk_shorts(v & 0x00FF00FFu) - (short)F::bias;
                odd[i] = xk_shorts((v >> 8) & 0x00FF00FFu) - (short)F::bias;
            } else {
                even[i] = (xk_short2)(xk_shorts(v) << 8) >> 8;
                odd[i] = xk_shorts(v) >> 8;
            }
        }
    }
    void sums(const int *xq, int &i0, int &i1) const {
        int half[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < 8; i += run) {
            xk_short2 sum = 0;
#pragma unroll
            for (int j = i; j < i + run; j++) {
                const xk_short2 x = xk_shorts((uint32_t)xq[j]);
                sum += even[j] * ((xk_short2)(x << 8) >> 8) + odd[j] * (x >> 8);
            }
            const int both = sycl::bit_cast<int>(sum);
            half[i / 4] += ((int)((uint32_t)both << 16) >> 16) + (both >> 16);
        }
        i0 = half[0];
        i1 = half[1];
    }
};
#endif

// N4's fused steps for a block whose halves sum to i0 and i1. xq: the activations' codes, s: their sum.
template <class F>
static inline float xk_add_block(float acc, const xk_block &b, int i0, int i1, const int *xq, float dx, const int *s) {
    int i = F::two_scales ? b.s0 * i0 + b.s1 * i1 : F::two_steps ? i0 : i0 + i1;
    if constexpr (F::has_shift)
        i = 8 * i + b.m * *s;
    if constexpr (F::offset != 0)
        i -= F::offset * *s;
    if constexpr (F::one_scale)
        i *= b.s0;
    acc = sycl::fma((float)i, b.d * dx, acc);
    if constexpr (F::has_min)
        acc = sycl::fma((float)(b.m * *s), b.mw * dx, acc);
    if constexpr (F::two_steps)
        acc = sycl::fma((float)i1, b.mw * dx, acc);
    if constexpr (F::two_mins) {
        int x0 = 0;
#pragma unroll
        for (int k = 0; k < 4; k++)
            x0 += xk_dot4(0x01010101, xq[k]);
        acc = sycl::fma((float)(b.m * x0 + b.m1 * (*s - x0)), b.mw * dx, acc);
    }
    return acc;
}

static inline uint32_t xk_word(const uint32_t *u, int i, int lane) { return u[i * 16 + lane]; }
// Byte g of the row's words from i on.
static inline uint32_t xk_byte(const uint32_t *u, int i, int g, int lane) {
    return (xk_word(u, i + (g >> 2), lane) >> (8 * (g & 3))) & 255u;
}
// Scale i of `scales`, which lie in front of the words.
static inline float xk_scale(const uint32_t *u, int scales, int i, int lane) {
    return xk_half_to_float(((const uint16_t *)u - 16 * scales)[i * 16 + lane]);
}

template <> struct xk_format<XK_Q8_0> : xk_defaults {
    static constexpr int unit = 32, words = 8, scales = 1;
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 8; i++)
            b.w[i] = (int)xk_word(u, i, lane);
        b.d = xk_scale(u, scales, 0, lane);
    }
};

template <> struct xk_format<XK_Q4_0> : xk_defaults {
    static constexpr int unit = 32, words = 4, scales = 1, offset = 8;
    static constexpr bool unsigned_codes = true;
    static constexpr int code_max = 15;
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t v = xk_word(u, i, lane);
            b.w[i] = (int)(v & 0x0F0F0F0Fu);
            b.w[4 + i] = (int)((v >> 4) & 0x0F0F0F0Fu);
        }
        b.d = xk_scale(u, scales, 0, lane);
    }
};

template <> struct xk_format<XK_Q4_1> : xk_defaults {
    static constexpr int unit = 32, words = 4, scales = 2;
    static constexpr bool has_min = true;
    static constexpr bool unsigned_codes = true;
    static constexpr int code_max = 15;
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t v = xk_word(u, i, lane);
            b.w[i] = (int)(v & 0x0F0F0F0Fu);
            b.w[4 + i] = (int)((v >> 4) & 0x0F0F0F0Fu);
        }
        b.m = 1;
        b.d = xk_scale(u, scales, 0, lane);
        b.mw = xk_scale(u, scales, 1, lane);
    }
};

// Nibble word i of a block, with fifth bits that are bits 2i (low nibbles) and 2i + 1 (high ones) of the bytes of hi.
static inline void xk_five_bits(uint32_t v, uint32_t hi, int i, int &low, int &high) {
    low = (int)((v & 0x0F0F0F0Fu) | (((hi >> (2 * i)) & 0x01010101u) << 4));
    high = (int)(((v >> 4) & 0x0F0F0F0Fu) | (((hi >> (2 * i + 1)) & 0x01010101u) << 4));
}

template <> struct xk_format<XK_Q5_0> : xk_defaults {
    static constexpr int unit = 32, words = 5, scales = 1, offset = 16;
    static constexpr bool unsigned_codes = true;
    static constexpr int code_max = 31;
    // Words: 4 of nibbles, 1 of fifth bits.
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *, xk_block &b) {
        uint32_t hi = xk_word(u, 4, lane);
#pragma unroll
        for (int i = 0; i < 4; i++)
            xk_five_bits(xk_word(u, i, lane), hi, i, b.w[i], b.w[4 + i]);
        b.d = xk_scale(u, scales, 0, lane);
    }
};

template <> struct xk_format<XK_Q5_1> : xk_defaults {
    static constexpr int unit = 32, words = 5, scales = 2;
    static constexpr bool has_min = true;
    static constexpr bool unsigned_codes = true;
    static constexpr int code_max = 31;
    // Words: 4 of nibbles, 1 of fifth bits.
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *, xk_block &b) {
        uint32_t hi = xk_word(u, 4, lane);
#pragma unroll
        for (int i = 0; i < 4; i++)
            xk_five_bits(xk_word(u, i, lane), hi, i, b.w[i], b.w[4 + i]);
        b.m = 1;
        b.d = xk_scale(u, scales, 0, lane);
        b.mw = xk_scale(u, scales, 1, lane);
    }
};

// The levels of a word's low and high nibbles. The table's entry for a byte holds the value of its low nibble in bits
// 0..7 and of its high nibble in bits 16..23. The CPU picks by one bit of the code after the other instead.
#ifdef XK_CARD
static inline void xk_levels(uint32_t v, const uint32_t *table, int &low, int &high) {
    uint32_t e0 = table[v & 255u], e1 = table[(v >> 8) & 255u], e2 = table[(v >> 16) & 255u], e3 = table[v >> 24];
    uint32_t a = e0 | (e1 << 8), c = e2 | (e3 << 8);
    low = (int)((a & 0xFFFFu) | (c << 16));
    high = (int)((a >> 16) | (c & 0xFFFF0000u));
}
#else
static inline int xk_low_levels(uint32_t v) {
    const auto bit = [&](int k) { return sycl::bit_cast<xk_char4>(v << (7 - k)); };
    const auto two = [&](int a, int b) { return xk_pick(bit(0), (xk_char4)(signed char)a, (xk_char4)(signed char)b); };
    const auto four = [&](xk_char4 a, xk_char4 b) { return xk_pick(bit(1), a, b); };
    const xk_char4 a = four(two(-127, -104), two(-83, -65)), b = four(two(-49, -35), two(-22, -10));
    const xk_char4 c = four(two(1, 13), two(25, 38)), d = four(two(53, 69), two(89, 113));
    return sycl::bit_cast<int>(xk_pick(bit(3), xk_pick(bit(2), a, b), xk_pick(bit(2), c, d)));
}
static inline void xk_levels(uint32_t v, const uint32_t *, int &low, int &high) {
    low = xk_low_levels(v);
    high = xk_low_levels(v >> 4);
}
#endif

template <> struct xk_format<XK_IQ4_NL> : xk_defaults {
    static constexpr int unit = 32, words = 4, scales = 1;
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *table, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            xk_levels(xk_word(u, i, lane), table, b.w[i], b.w[4 + i]);
        b.d = xk_scale(u, scales, 0, lane);
    }
};

// Four doubled E2M1 values from the low halves of the bytes of v. Magnitudes 0 to 7 mean 0, 1, 2, 3, 4, 6, 8, 12; there
// is no minus zero.
static inline int xk_fp4(uint32_t v) {
    uint32_t m = v & 0x07070707u, top = (m >> 2) & 0x01010101u;
    uint32_t low = m & (top * 3u);   // the lower two bits where the magnitude is 4 or more
    uint32_t all = low & (low >> 1); // 1 where it is 7
    uint32_t value = m + low + (all << 1), s = (v >> 3) & 0x01010101u;
    return (int)((value ^ (s * 255u)) + s);
}

template <> struct xk_format<XK_MXFP4> : xk_defaults {
    static constexpr int unit = 32, words = 4, scales = 1, scale_bytes = 1;
    static constexpr int code_max = 12;
    static inline void load(const uint32_t *u, int, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t v = xk_word(u, i, lane);
            b.w[i] = xk_fp4(v);
            b.w[4 + i] = xk_fp4(v >> 4);
        }
        uint32_t e = ((const uint8_t *)u - 16)[lane];
        b.d = xk_bits_to_float(e < 2u ? 0x00200000u << (e & 1u) : (e - 1u) << 23); // 2^(e - 128)
    }
};

template <> struct xk_format<XK_NVFP4> : xk_defaults {
    static constexpr int unit = 64, words = 9, scales = 0;
    static constexpr bool two_steps = true;
    static constexpr int code_max = 12;
    // Words: 1 of E4M3 scales (two a block), then 4 of nibbles a block.
    static inline void load(const uint32_t *u, int g, int lane, const uint32_t *, xk_block &b) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t v = xk_word(u, 1 + 4 * g + i, lane);
            b.w[i] = xk_fp4(v);
            b.w[4 + i] = xk_fp4(v >> 4);
        }
        // As the bits of an f16 the seven bits are 2^-8 of the scale; half of the scale is wanted.
        uint32_t s = xk_word(u, 0, lane) >> (16 * g);
        b.d = xk_half_to_float((uint16_t)((s & 127u) << 7)) * 128.0f;
        b.mw = xk_half_to_float((uint16_t)((s >> 1) & 0x3F80u)) * 128.0f;
    }
};

// Float weights: 32 columns a unit.
template <> struct xk_format<XK_F32> : xk_defaults {
    static constexpr int unit = 32, words = 32, scales = 0;
    static inline float at(const uint32_t *u, int k, int lane) { return xk_bits_to_float(xk_word(u, k, lane)); }
};
template <> struct xk_format<XK_F16> : xk_defaults {
    static constexpr int unit = 32, words = 16, scales = 0;
    static inline float at(const uint32_t *u, int k, int lane) {
        return xk_half_to_float((uint16_t)(xk_word(u, k >> 1, lane) >> (16 * (k & 1))));
    }
};
template <> struct xk_format<XK_BF16> : xk_defaults {
    static constexpr int unit = 32, words = 16, scales = 0;
    static inline float at(const uint32_t *u, int k, int lane) {
        return xk_bits_to_float((xk_word(u, k >> 1, lane) >> (16 * (k & 1))) << 16);
    }
};

#include "formats_k.hpp"
#include "formats_iq.hpp"
