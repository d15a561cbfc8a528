// op family : hyper, the hyper-connections around every block (N5 "Mix" and "Add a block's output" of docs/numerics.md)
// shapes    : R f32 [T][hc][d]; y f32 [T][d]; weights f32 [T][hc]; X and its codes [T][hc*d]; d a multiple of 32
// launch    : 128 items, 8 teams of 16 lanes
#include "../common/math.hpp"

// R[t][c] = x[t] for every stream. One item a value of x.
XK_KERNEL void hyper_start(const float *x, float *r, int hc, int d, int tokens) {
    auto it = xk_item();
    size_t i = it.get_global_id(0);
    if (i >= (size_t)tokens * d)
        return;
    size_t t = i / d, k = i % d;
    float v = x[i];
    for (int c = 0; c < hc; c++)
        r[(t * hc + c) * d + k] = v;
}

// Adds the pending block output (y may be null), then X = rms_norm of each stream, quantised. A team a stream.
XK_KERNEL void hyper_norm(float *r, const float *y, const float *weights, const float *norm, float *x, int8_t *q,
                          float *dx, int *sx, int hc, int d, float inv_d, float eps, int rows) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int row_raw = (int)it.get_group(0) * 8 + xk_team(it);
    const bool live = row_raw < rows;
    const int row = live ? row_raw : rows - 1;
    const int t = row / hc, c = row % hc;
    float *rr = r + (size_t)row * d;
    float p = 0.0f;
    if (y) {
        const float w = weights ? weights[row] : 1.0f;
        const float *yy = y + (size_t)t * d;
        for (int i = lane; i < d; i += 16) {
            float v = sycl::fma(w, yy[i], rr[i]);
            if (live)
                rr[i] = v;
            p = sycl::fma(v, v, p);
        }
    } else {
        for (int i = lane; i < d; i += 16)
            p = sycl::fma(rr[i], rr[i], p);
    }
    const float s = xk_rsqrt(sycl::fma(xk_tree16(sg, p), inv_d, eps));
    if (!live)
        return;
    const float *nn = norm + (size_t)c * d;
    xk_row_out o{x, q, dx, sx};
    for (int b = 0; b < d; b += 32) {
        float v0 = (rr[b + lane] * s) * nn[b + lane], v1 = (rr[b + 16 + lane] * s) * nn[b + 16 + lane];
        xk_store_block(sg, lane, o, (size_t)row * d + b, v0, v1);
    }
}

// m = mean over streams of sigmoid(a) X, quantised; stream weights w = 2 sigmoid(inject / hc) unless inject is null. A
// team a block of 32 columns.
XK_KERNEL void hyper_mix(const float *a, const float *x, const float *inject, float *weights, float *m, int8_t *q,
                         float *dm, int *sm, int hc, int d, float inv_hc, int tokens) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int block = (int)it.get_group(0) * 8 + xk_team(it), blocks = d / 32;
    if (block >= tokens * blocks)
        return;
    const int t = block / blocks, b = (block % blocks) * 32;
    float v0 = 0.0f, v1 = 0.0f;
    for (int c = 0; c < hc; c++) {
        size_t at = ((size_t)t * hc + c) * d + b + lane;
        v0 = sycl::fma(xk_sigmoid(a[at]), x[at], v0);
        v1 = sycl::fma(xk_sigmoid(a[at + 16]), x[at + 16], v1);
    }
    xk_store_block(sg, lane, {m, q, dm, sm}, (size_t)t * d + b, v0 * inv_hc, v1 * inv_hc);
    if (inject && b == 0 && lane < hc)
        weights[t * hc + lane] = 2.0f * xk_sigmoid(inject[t * hc + lane] * inv_hc);
}
