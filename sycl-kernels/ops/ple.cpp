// op family : ple, the n-gram embedding of a layer (N5 "PLE" of docs/numerics.md)
// shapes    : R f32 [T][hc][d]; y f32 [T][d], weights f32 [T][hc] (the pending block output; y may be null); key f32
// [T][hc*d]; value f32 [T][d];
//             n f32 [T][hc*d]; history f32 [(taps-1)*N][hc*d], oldest first
#include "../common/math.hpp"

// Adds the pending output, gates the value per stream, adds it to R, and leaves the normalised vector for the
// convolution. A team a (token, stream).
XK_KERNEL void ple_gate(float *r, const float *y, const float *weights, const float *key, const float *value,
                        const float *norm_key, const float *norm_query, const float *norm_conv, float *n, int hc, int d,
                        float inv_d, float inv_sqrt_d, float eps, int rows) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int row_raw = (int)it.get_group(0) * 8 + xk_team(it);
    const bool live = row_raw < rows;
    const int row = live ? row_raw : rows - 1;
    const int t = row / hc, c = row % hc;
    float *rr = r + (size_t)row * d, *nn = n + (size_t)row * d;
    const float *kk = key + (size_t)row * d, *vv = value + (size_t)t * d, *yy = y ? y + (size_t)t * d : nullptr;
    const float *wk = norm_key + (size_t)c * d, *wq = norm_query + (size_t)c * d, *wc = norm_conv + (size_t)c * d;
    const float w = y ? weights[row] : 0.0f;
    float pk = 0.0f, pr = 0.0f;
    for (int i = lane; i < d; i += 16) {
        pk = sycl::fma(kk[i], kk[i], pk);
        const float v = yy ? sycl::fma(w, yy[i], rr[i]) : rr[i];
        pr = sycl::fma(v, v, pr);
    }
    const float sk = xk_rsqrt(sycl::fma(xk_tree16(sg, pk), inv_d, eps)),
                sr = xk_rsqrt(sycl::fma(xk_tree16(sg, pr), inv_d, eps));
    float p = 0.0f;
    for (int i = lane; i < d; i += 16) {
        const float v = yy ? sycl::fma(w, yy[i], rr[i]) : rr[i];
        p = sycl::fma((kk[i] * sk) * wk[i], (v * sr) * wq[i], p);
    }
    const float s = xk_tree16(sg, p) * inv_sqrt_d;
    const float root = xk_sqrt(xk_max(sycl::fabs(s), 1e-6f));
    const float g = xk_sigmoid(s > 0.0f ? root : s < 0.0f ? -root : 0.0f);
    float pg = 0.0f;
    for (int i = lane; i < d; i += 16) {
        const float gv = g * vv[i];
        pg = sycl::fma(gv, gv, pg);
    }
    const float sc = xk_rsqrt(sycl::fma(xk_tree16(sg, pg), inv_d, eps));
    if (!live)
        return;
    for (int i = lane; i < d; i += 16) {
        const float gv = g * vv[i];
        const float v = yy ? sycl::fma(w, yy[i], rr[i]) : rr[i];
        rr[i] = v + gv;
        nn[i] = (gv * sc) * wc[i];
    }
}

// The dilated convolution over the chunk, added to R; keeps the last (taps-1)*N vectors. An item a channel.
XK_KERNEL void ple_conv(float *r, const float *n, const float *conv, float *history, int channels, int taps,
                        int dilation, int tokens) {
    auto it = xk_item();
    const int ch = (int)it.get_global_id(0);
    if (ch >= channels)
        return;
    const int past = (taps - 1) * dilation;
    for (int t = 0; t < tokens; t++) {
        float acc = 0.0f;
        for (int k = 0; k < taps; k++) {
            const int at = t - (taps - 1 - k) * dilation;
            const float v = at >= 0 ? n[(size_t)at * channels + ch] : history[(size_t)(at + past) * channels + ch];
            acc = sycl::fma(conv[ch * taps + k], v, acc);
        }
        r[(size_t)t * channels + ch] = r[(size_t)t * channels + ch] + xk_silu(acc);
    }
    for (int k = 0; k < past; k++) {
        const int at = tokens + k - past;
        history[(size_t)k * channels + ch] =
            at >= 0 ? n[(size_t)at * channels + ch] : history[(size_t)(k + tokens) * channels + ch];
    }
}
