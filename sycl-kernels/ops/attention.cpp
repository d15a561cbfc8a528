// op family : attention, gated attention over a visible list (N5 of docs/numerics.md); XK_KV is the cache's type,
// XK_HEAD_DIM = D shapes    : qg f32 [T][H][2][D] (query, gate); k, v f32 [T][Hkv][D]; cache [ctx][Hkv][D]; table f32
// [ctx][R]; out [T][H*D]; R a multiple of 32 position  : *start is the position of the chunk's first token
#include "../common/math.hpp"

using kv_t = XK_KV;
constexpr int kD = XK_HEAD_DIM, kPiece = 64, kTeams = 8;
constexpr int kAtOnce = 4; // keys in flight, which hide each other's latency; divides kPiece

// y = rope(rms_norm(x, w), p) for one vector of n values, through the lane that owns i mod 16.
template <class Store> static inline void norm_rope(xk_group sg, int lane, const float *x, const float *w,
                                                    const float *row, int n, int rot, float inv_n, float eps,
                                                    Store store) {
    float p = 0.0f;
    for (int i = lane; i < n; i += 16)
        p = sycl::fma(x[i], x[i], p);
    const float s = xk_rsqrt(sycl::fma(xk_tree16(sg, p), inv_n, eps));
    const int half = rot / 2;
    for (int i = lane; i < half; i += 16) {
        const float a = (x[i] * s) * w[i], b = (x[i + half] * s) * w[i + half];
        const float c = row[i], sn = row[half + i];
        store(i, sycl::fma(-b, sn, a * c));
        store(i + half, sycl::fma(a, sn, b * c));
    }
    for (int i = rot + lane; i < n; i += 16)
        store(i, (x[i] * s) * w[i]);
}

// Normalises and rotates queries, keys and index queries, appends keys and values to the cache, keeps the raw index
// keys of the open block. A team a (token, head).
XK_KERNEL void attention_prepare(const float *qg, const float *k, const float *v, const float *iq_raw,
                                 const float *ik_raw, const float *q_norm, const float *k_norm, const float *iq_norm,
                                 const float *table, const int *start, float *q, kv_t *k_cache, kv_t *v_cache,
                                 float *iq, float *tail, int heads, int kv_heads, int index_heads, int index_dim,
                                 int ratio, int rot, float inv_d, float inv_di, float eps, int tokens) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int per_token = heads + 2 * kv_heads + index_heads + (index_heads > 0 ? 1 : 0);
    const int unit = (int)it.get_group(0) * kTeams + xk_team(it);
    if (unit >= tokens * per_token)
        return;
    const int t = unit / per_token;
    int head = unit % per_token;
    const int first = *start, position = first + t;
    const float *row = table + (size_t)position * rot;
    if (head < heads) {
        float *dst = q + ((size_t)t * heads + head) * kD;
        norm_rope(sg, lane, qg + ((size_t)t * heads + head) * 2 * kD, q_norm, row, kD, rot, inv_d, eps,
                  [=](int i, float y) { dst[i] = y; });
        return;
    }
    head -= heads;
    if (head < kv_heads) {
        kv_t *dst = k_cache + ((size_t)position * kv_heads + head) * kD;
        norm_rope(sg, lane, k + ((size_t)t * kv_heads + head) * kD, k_norm, row, kD, rot, inv_d, eps,
                  [=](int i, float y) { dst[i] = (kv_t)y; });
        return;
    }
    head -= kv_heads;
    if (head < kv_heads) {
        const float *src = v + ((size_t)t * kv_heads + head) * kD;
        kv_t *dst = v_cache + ((size_t)position * kv_heads + head) * kD;
        for (int i = lane; i < kD; i += 16)
            dst[i] = (kv_t)src[i];
        return;
    }
    head -= kv_heads;
    if (head < index_heads) {
        float *dst = iq + ((size_t)t * index_heads + head) * index_dim;
        norm_rope(sg, lane, iq_raw + ((size_t)t * index_heads + head) * index_dim, iq_norm, row, index_dim, rot, inv_di,
                  eps, [=](int i, float y) { dst[i] = y; });
        return;
    }
    if (position >= (first + tokens) / ratio * ratio)
        for (int i = lane; i < index_dim; i += 16)
            tail[(position % ratio) * index_dim + i] = ik_raw[(size_t)t * index_dim + i];
}

// Pools, normalises and rotates the index keys of the blocks that this chunk completes. Runs before attention_prepare.
// A team a block.
XK_KERNEL void index_pool(const float *ik_raw, const float *tail, const float *k_norm, const float *table,
                          const int *start, float *mean, kv_t *pooled, int index_dim, int ratio, int rot,
                          float inv_ratio, float inv_di, float eps, int tokens) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int first = *start;
    const int nth = (int)it.get_group(0) * kTeams + xk_team(it), block = first / ratio + nth;
    if (block >= (first + tokens) / ratio)
        return;
    float *mm = mean + (size_t)nth * index_dim;
    for (int i = lane; i < index_dim; i += 16) {
        float acc = 0.0f;
        for (int j = 0; j < ratio; j++) {
            const int position = block * ratio + j;
            const float r = position >= first ? ik_raw[(size_t)(position - first) * index_dim + i]
                                              : tail[(position % ratio) * index_dim + i];
            acc = j == 0 ? r : acc + r;
        }
        mm[i] = acc * inv_ratio;
    }
    kv_t *dst = pooled + (size_t)block * index_dim;
    norm_rope(sg, lane, mm, k_norm, table + (size_t)block * ratio * rot, index_dim, rot, inv_di, eps,
              [=](int i, float y) { dst[i] = (kv_t)y; });
}

// score[t][b] for tokens whose complete blocks exceed the budget. A team walks the blocks of one token.
XK_KERNEL void index_score(const float *iq, const kv_t *pooled, const int *start, float *score, int index_heads,
                           int index_dim, int ratio, int budget, int max_blocks, int groups_per_token) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int t = (int)it.get_group(0) / groups_per_token, part = (int)it.get_group(0) % groups_per_token;
    const int nb = (*start + t + 1) / ratio;
    if (nb <= budget)
        return;
    for (int b = part * kTeams + xk_team(it); b < nb; b += groups_per_token * kTeams) {
        const kv_t *kk = pooled + (size_t)b * index_dim;
        float total = 0.0f;
        for (int h = 0; h < index_heads; h++) {
            const float *qq = iq + ((size_t)t * index_heads + h) * index_dim;
            float p = 0.0f;
            for (int i = lane; i < index_dim; i += 16)
                p = sycl::fma(qq[i], (float)kk[i], p);
            total = total + xk_max(0.0f, xk_tree16(sg, p));
        }
        if (lane == 0)
            score[(size_t)t * max_blocks + b] = total;
    }
}

ex::work_group_static<float[kTeams * kD]> attention_o;
ex::work_group_static<float[kTeams * kPiece]> attention_e;
ex::work_group_static<float[kTeams * 2]> attention_mz;

// Attention of one query head over its visible positions, gated and quantised. One group a (token, head), a team a
// piece of 64 positions; pieces are merged in ascending order. budget 0 means that all is visible.
XK_KERNEL void attention(const float *q, const float *qg, const kv_t *k_cache, const kv_t *v_cache, const int *selected,
                         const int *start, float *x, int8_t *xq, float *xd, int *xs, int heads, int kv_heads, int ratio,
                         int budget, float scale) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it), team = xk_team(it);
    const int t = (int)it.get_group(0) / heads, h = (int)it.get_group(0) % heads, kv_head = h / (heads / kv_heads);
    const int n = *start + t + 1;
    const int blocks = budget > 0 ? n / ratio : 0;
    const bool sparse = budget > 0 && blocks > budget;
    const int visible = sparse ? budget * ratio + (n - blocks * ratio) : n;
    const int *list = selected + (size_t)t * budget;
    const float *qq = q + ((size_t)t * heads + h) * kD;
    float *o_slot = (float *)&attention_o + team * kD, *e_slot = (float *)&attention_e + team * kPiece;
    float *o_all = (float *)&attention_o, *mz_all = (float *)&attention_mz;
    auto position_of = [=](int j) {
        if (!sparse)
            return j;
        return j < budget * ratio ? list[j / ratio] * ratio + j % ratio : blocks * ratio + (j - budget * ratio);
    };
    float qr[kD / 16];
#pragma unroll
    for (int i = 0; i < kD / 16; i++)
        qr[i] = qq[i * 16 + lane];

    constexpr int kOwn =
        kD / 32 / kTeams > 0 ? kD / 32 / kTeams : 1; // blocks of 32 output values a team owns in the merge
    float big_m = 0.0f, big_z = 0.0f, big_o[kOwn][2];
#pragma unroll
    for (int i = 0; i < kOwn; i++)
        big_o[i][0] = big_o[i][1] = 0.0f;
    const int pieces = (visible + kPiece - 1) / kPiece;
    for (int base = 0; base < pieces; base += kTeams) {
        const int piece = base + team;
        if (piece < pieces) {
            const int j0 = piece * kPiece, count = visible - j0 < kPiece ? visible - j0 : kPiece;
            float m = -3.0e38f;
            for (int j = 0; j < count; j += kAtOnce) {
#pragma unroll
                for (int u = 0; u < kAtOnce; u++) {
                    // Past the end the last position comes again, which changes no maximum.
                    const int at = j + u < count ? j + u : count - 1;
                    const kv_t *kk = k_cache + ((size_t)position_of(j0 + at) * kv_heads + kv_head) * kD;
                    float p = 0.0f;
#pragma unroll
                    for (int i = 0; i < kD / 16; i++)
                        p = sycl::fma(qr[i], (float)kk[i * 16 + lane], p);
                    const float sc = xk_tree16(sg, p) * scale;
                    m = xk_max(m, sc);
                    if (lane == 0)
                        e_slot[j + u] = sc;
                }
            }
            sycl::group_barrier(sg);
            float z = 0.0f;
            for (int j = lane; j < count; j += 16) {
                const float e = xk_exp(e_slot[j] - m);
                e_slot[j] = e;
                z = z + e;
            }
            z = xk_tree16(sg, z);
            sycl::group_barrier(sg);
            float o[kD / 16];
#pragma unroll
            for (int i = 0; i < kD / 16; i++)
                o[i] = 0.0f;
            for (int j = 0; j < count; j++) {
                const float e = e_slot[j];
                const kv_t *vv = v_cache + ((size_t)position_of(j0 + j) * kv_heads + kv_head) * kD;
#pragma unroll
                for (int i = 0; i < kD / 16; i++)
                    o[i] = sycl::fma(e, (float)vv[i * 16 + lane], o[i]);
            }
#pragma unroll
            for (int i = 0; i < kD / 16; i++)
                o_slot[i * 16 + lane] = o[i];
            if (lane == 0) {
                mz_all[team * 2] = m;
                mz_all[team * 2 + 1] = z;
            }
        }
        sycl::group_barrier(it.get_group());
        const int here = pieces - base < kTeams ? pieces - base : kTeams;
        for (int p = 0; p < here; p++) {
            const float m = mz_all[p * 2], z = mz_all[p * 2 + 1];
            const bool start_piece = base + p == 0;
            const float top = start_piece ? m : xk_max(big_m, m);
            const float a = xk_exp(big_m - top), b = xk_exp(m - top);
            big_z = start_piece ? z : sycl::fma(big_z, a, z * b);
#pragma unroll
            for (int i = 0; i < kOwn; i++) {
                const int at = (i * kTeams + team) * 32 + lane;
                if (at < kD) {
                    const float o0 = o_all[p * kD + at], o1 = o_all[p * kD + at + 16];
                    big_o[i][0] = start_piece ? o0 : sycl::fma(big_o[i][0], a, o0 * b);
                    big_o[i][1] = start_piece ? o1 : sycl::fma(big_o[i][1], a, o1 * b);
                }
            }
            big_m = top;
        }
        sycl::group_barrier(it.get_group());
    }
    const float inv = xk_recip(big_z);
    const float *gate = qg + (((size_t)t * heads + h) * 2 + 1) * kD;
#pragma unroll
    for (int i = 0; i < kOwn; i++) {
        const int block = (i * kTeams + team) * 32;
        if (block >= kD)
            break;
        const float v0 = (big_o[i][0] * inv) * xk_sigmoid(gate[block + lane]),
                    v1 = (big_o[i][1] * inv) * xk_sigmoid(gate[block + 16 + lane]);
        xk_store_block(sg, lane, {x, xq, xd, xs}, ((size_t)t * heads + h) * kD + block, v0, v1);
    }
}
