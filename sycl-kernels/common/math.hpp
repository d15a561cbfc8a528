// Scalar functions and sums of the arithmetic contract (docs/numerics.md N1 and N2), for device code.
#pragma once
#include "kernel.hpp"

static inline float xk_bits_to_float(uint32_t b) { return sycl::bit_cast<float>(b); }
static inline uint32_t xk_float_to_bits(float f) { return sycl::bit_cast<uint32_t>(f); }
static inline float xk_max(float a, float b) { return a > b ? a : b; }

static inline float xk_recip(float x) {
    float y = xk_bits_to_float(0x7EF311C7u - xk_float_to_bits(x));
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float e = sycl::fma(-x, y, 1.0f);
        y = sycl::fma(y, e, y);
    }
    return y;
}

static inline float xk_rsqrt(float x) {
    float y = xk_bits_to_float(0x5F375A86u - (xk_float_to_bits(x) >> 1));
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float t = x * y;
        float e = sycl::fma(-t, y, 1.0f);
        y = sycl::fma(0.5f * y, e, y);
    }
    return y;
}

static inline float xk_sqrt(float x) { return x * xk_rsqrt(x); }

static inline float xk_exp(float x) {
    x = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
    float t = sycl::fma(x, 1.44269504f, 12582912.0f);
    float n = t - 12582912.0f;
    float r = sycl::fma(n, -0.693145752f, x);
    r = sycl::fma(n, -1.42860677e-6f, r);
    float p = 1.98756915e-4f;
    p = sycl::fma(p, r, 1.39819995e-3f);
    p = sycl::fma(p, r, 8.33345186e-3f);
    p = sycl::fma(p, r, 4.16657962e-2f);
    p = sycl::fma(p, r, 1.66666657e-1f);
    p = sycl::fma(p, r, 0.5f);
    float q = sycl::fma(p, r * r, r) + 1.0f;
    return xk_bits_to_float(xk_float_to_bits(q) + ((uint32_t)(int)n << 23));
}

static inline float xk_log(float y) {
    int e = (int)(xk_float_to_bits(y) - 0x3F3504F3u) >> 23;
    float f = xk_bits_to_float(xk_float_to_bits(y) - ((uint32_t)e << 23)) - 1.0f;
    float z = f * f;
    float p = 7.0376836292e-2f;
    p = sycl::fma(p, f, -1.1514610310e-1f);
    p = sycl::fma(p, f, 1.1676998740e-1f);
    p = sycl::fma(p, f, -1.2420140846e-1f);
    p = sycl::fma(p, f, 1.4249322787e-1f);
    p = sycl::fma(p, f, -1.6668057665e-1f);
    p = sycl::fma(p, f, 2.0000714765e-1f);
    p = sycl::fma(p, f, -2.4999993993e-1f);
    p = sycl::fma(p, f, 3.3333331174e-1f);
    float ef = (float)e;
    float r = (f * z) * p;
    r = sycl::fma(ef, -2.12194440e-4f, r);
    r = sycl::fma(-0.5f, z, r);
    r = f + r;
    return sycl::fma(ef, 0.693359375f, r);
}

static inline float xk_log1p(float u) {
    float y = 1.0f + u;
    float c = (u - (y - 1.0f)) * xk_recip(y);
    return xk_log(y) + c;
}

// One correction step each, since 1 + e and its reciprocal round twice.
static inline float xk_sigmoid(float x) {
    float t = -x;
    t = t < -80.0f ? -80.0f : (t > 80.0f ? 80.0f : t);
    const float g = xk_exp(t), y = xk_recip(1.0f + g);
    const float e = sycl::fma(-g, y, 1.0f) - y;
    return sycl::fma(y, e, y);
}

static inline float xk_silu(float x) {
    float t = -x;
    t = t < -80.0f ? -80.0f : (t > 80.0f ? 80.0f : t);
    const float g = xk_exp(t), y = xk_recip(1.0f + g);
    const float q = x * y;
    const float e = sycl::fma(-q, g, x) - q;
    return sycl::fma(e, y, q);
}

static inline float xk_softplus(float x) { return x > 20.0f ? x : xk_log1p(xk_exp(x)); }

// The fixed tree of N2 over a team of 16 lanes; every lane gets the result.
static inline float xk_tree16(xk_group sg, float p) {
#pragma unroll
    for (int m = 8; m >= 1; m >>= 1)
        p = p + sycl::permute_group_by_xor(sg, p, m);
    return p;
}
static inline float xk_max16(xk_group sg, float p) {
#pragma unroll
    for (int m = 8; m >= 1; m >>= 1)
        p = xk_max(p, sycl::permute_group_by_xor(sg, p, m));
    return p;
}
static inline int xk_isum16(xk_group sg, int p) {
#pragma unroll
    for (int m = 8; m >= 1; m >>= 1)
        p = p + sycl::permute_group_by_xor(sg, p, m);
    return p;
}

// One row's activations as the matrix kernels read them (N4): f32 values, int8 codes, and per block of 32 the scale and
// the sum of codes.
struct xk_row_out {
    float *x;
    int8_t *q;
    float *d;
    int *s;
};

// Stores the block whose elements `lane` and `lane + 16` are v0 and v1: value index `at` is the block's first element.
static inline void xk_store_block(xk_group sg, int lane, xk_row_out o, size_t at, float v0, float v1) {
    float amax = xk_max16(sg, xk_max(sycl::fabs(v0), sycl::fabs(v1)));
    bool zero = amax < 7.88860905e-31f; // 2^-100
    float dx = zero ? 0.0f : amax * 0.00787401571869850158691f;
    float inv = zero ? 0.0f : xk_recip(dx);
    int q0 = (int)sycl::rint(v0 * inv);
    int q1 = (int)sycl::rint(v1 * inv);
    int sum = xk_isum16(sg, q0 + q1);
    o.x[at + lane] = v0;
    o.x[at + 16 + lane] = v1;
    o.q[at + lane] = (int8_t)q0;
    o.q[at + 16 + lane] = (int8_t)q1;
    if (lane == 0) {
        o.d[at / 32] = dx;
        o.s[at / 32] = sum;
    }
}
