// op family : gdn, the gated delta net (N5 of docs/numerics.md), the plain recurrence in every case
// shapes    : u f32 [T][C], C = (2 Nk + Nv) S, rows q, k, v; z f32 [T][Nv*S]; gates of value head h at h / group *
// stride + h mod group of b's and a's rows; window f32 [taps-1][C]; state f32 [Nv][S(v)][S(k)]; S = 128 launch    : 128
// items, 8 teams of 16 lanes
#include "../common/math.hpp"

constexpr int kS = 128, kRows = 4; // rows of the state a team holds in registers

// Convolution, silu, and l2_norm of q and k heads; then beta and decay. A team a (token, head of u), and one team a
// token for the gates.
XK_KERNEL void gdn_conv(const float *u, const float *window, const float *conv, const float *b, const float *a,
                        const float *ssm_a, const float *dt, float *y, float *gates, int nk, int nv, int gate_group,
                        int gate_stride, int gate_row, int taps, float eps, int tokens) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int heads = 2 * nk + nv, channels = heads * kS;
    const int unit_raw = (int)it.get_group(0) * 8 + xk_team(it), units = tokens * (heads + 1);
    const int unit = unit_raw < units ? unit_raw : units - 1;
    const int t = unit / (heads + 1), unit_head = unit % (heads + 1);
    const int head = unit_head < heads ? unit_head : heads - 1;
    float v[kS / 16], p = 0.0f;
#pragma unroll
    for (int i = 0; i < kS / 16; i++) {
        const int ch = head * kS + i * 16 + lane;
        float acc = 0.0f;
        for (int k = 0; k < taps; k++) {
            const int at = t + k - (taps - 1);
            const float value =
                at >= 0 ? u[(size_t)at * channels + ch] : window[(size_t)(at + taps - 1) * channels + ch];
            acc = sycl::fma(conv[ch * taps + k], value, acc);
        }
        v[i] = xk_silu(acc);
        p = sycl::fma(v[i], v[i], p);
    }
    float s = xk_rsqrt(xk_tree16(sg, p) + eps);
    if (unit_head == heads) {
        for (int h = lane; h < nv; h += 16) {
            const size_t from = (size_t)t * gate_row + h / gate_group * gate_stride + h % gate_group;
            gates[((size_t)t * nv + h) * 2] = xk_sigmoid(b[from]);
            gates[((size_t)t * nv + h) * 2 + 1] = xk_exp(ssm_a[h] * xk_softplus(a[from] + dt[h]));
        }
        return;
    }
    float *out = y + (size_t)t * channels + head * kS;
#pragma unroll
    for (int i = 0; i < kS / 16; i++)
        out[i * 16 + lane] = head < 2 * nk ? v[i] * s : v[i];
}

// The recurrence over the chunk, state rows in registers. A team kRows rows of one value head. Also moves the
// convolution window on.
XK_KERNEL void gdn_step(const float *y, const float *gates, const float *u, float *window, float *state, float *o,
                        int nk, int nv, int grouped, int taps, float scale, int tokens) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int channels = (2 * nk + nv) * kS;
    const int unit = (int)it.get_group(0) * 8 + xk_team(it); // nv * kS / kRows units, a multiple of 8
    const int h = unit / (kS / kRows), row0 = (unit % (kS / kRows)) * kRows;
    const int key_head = grouped ? h / (nv / nk) : h % nk;
    float *m = state + ((size_t)h * kS + row0) * kS;
    float mm[kRows][kS / 16];
#pragma unroll
    for (int r = 0; r < kRows; r++)
#pragma unroll
        for (int i = 0; i < kS / 16; i++)
            mm[r][i] = m[r * kS + i * 16 + lane];
    for (int t = 0; t < tokens; t++) {
        const float *yt = y + (size_t)t * channels;
        const float *qt = yt + key_head * kS, *kt = yt + (nk + key_head) * kS, *vt = yt + (2 * nk + h) * kS + row0;
        const float beta = gates[((size_t)t * nv + h) * 2], decay = gates[((size_t)t * nv + h) * 2 + 1];
        float kk[kS / 16], qq[kS / 16];
#pragma unroll
        for (int i = 0; i < kS / 16; i++) {
            kk[i] = kt[i * 16 + lane];
            qq[i] = qt[i * 16 + lane];
        }
        float keep = 0.0f;
#pragma unroll
        for (int r = 0; r < kRows; r++) {
            float p = 0.0f;
#pragma unroll
            for (int i = 0; i < kS / 16; i++) {
                mm[r][i] = mm[r][i] * decay;
                p = sycl::fma(mm[r][i], kk[i], p);
            }
            const float e = beta * (vt[r] - xk_tree16(sg, p));
            float pq = 0.0f;
#pragma unroll
            for (int i = 0; i < kS / 16; i++) {
                mm[r][i] = sycl::fma(e, kk[i], mm[r][i]);
                pq = sycl::fma(mm[r][i], qq[i], pq);
            }
            pq = xk_tree16(sg, pq) * scale;
            keep = lane == r ? pq : keep;
        }
        if (lane < kRows)
            o[((size_t)t * nv + h) * kS + row0 + lane] = keep;
    }
#pragma unroll
    for (int r = 0; r < kRows; r++)
#pragma unroll
        for (int i = 0; i < kS / 16; i++)
            m[r * kS + i * 16 + lane] = mm[r][i];
    // Each channel belongs to one item, which moves its taps in ascending order, so that nothing is read after it was
    // replaced.
    for (int ch = (int)it.get_global_id(0); ch < channels; ch += (int)it.get_global_range(0))
        for (int k = 0; k < taps - 1; k++) {
            const int at = tokens + k - (taps - 1);
            window[(size_t)k * channels + ch] =
                at >= 0 ? u[(size_t)at * channels + ch] : window[(size_t)(k + tokens) * channels + ch];
        }
}

// out = rms_norm(o, norm) * sigmoid(z), or silu(z), quantised. A team a (token, value head).
XK_KERNEL void gdn_norm(const float *o, const float *z, const float *norm, float *x, int8_t *q, float *d, int *s,
                        float inv_s, float eps, int silu, int rows) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int row_raw = (int)it.get_group(0) * 8 + xk_team(it);
    const bool live = row_raw < rows;
    const size_t at = (size_t)(live ? row_raw : rows - 1) * kS;
    float v[kS / 16], p = 0.0f;
#pragma unroll
    for (int i = 0; i < kS / 16; i++) {
        v[i] = o[at + i * 16 + lane];
        p = sycl::fma(v[i], v[i], p);
    }
    const float r = xk_rsqrt(sycl::fma(xk_tree16(sg, p), inv_s, eps));
    if (!live)
        return;
#pragma unroll
    for (int b = 0; b < kS / 32; b++) {
        const int i0 = b * 32 + lane, i1 = i0 + 16;
        const float z0 = z[at + i0], z1 = z[at + i1];
        float v0 = ((v[2 * b] * r) * norm[i0]) * (silu ? xk_silu(z0) : xk_sigmoid(z0)),
              v1 = ((v[2 * b + 1] * r) * norm[i1]) * (silu ? xk_silu(z1) : xk_sigmoid(z1));
        xk_store_block(sg, lane, {x, q, d, s}, at + b * 32, v0, v1);
    }
}
