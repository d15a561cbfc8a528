// op family : matmul, y[t][n] = sum_k W[n][k] x[t][k], order of roundings N4 of docs/numerics.md
// shapes    : W packed tiles [ceil(N/16)][K/unit] (common/formats.hpp); x f32 [rows][K], q int8 [rows][K], d f32
// [rows][K/32], s i32 [rows][K/32]; y f32 [rows][N] dense     : plan is null; row group g computes rows g*R .. experts
// : plan holds [0] the number of entries and entries {expert, first, count} into the slot list behind them; experts u64
// [E] holds the address of each expert's W;
//             slot i reads x row slot/x_div and writes y row slot
// launch    : 128 items, 8 teams of 16 lanes (matmul_r1: R = 1, matmul_r8: R = 8); a lane owns a row of W, a team one
// segment of one tile; segments are added through local memory bytes     : N*K*bits(F)/8 once per R rows of x, plus x
// and y
#include "../common/formats.hpp"

#ifndef XK_FORMAT
#error "XK_FORMAT names the weight format"
#endif

// An address that was read from memory is one of device or pinned host memory; said so, loads through it stay global.
using global_words = __attribute__((opencl_global)) const uint32_t *;

// R rows of x at once, so that a block of weights is decoded once for all of them. Each row's sum is the same for every
// R.
template <int R> static inline void matmul(float *partial, const uint32_t *w, const uint32_t *table, const float *x,
                                           const int *q, const float *d, const int *s, float *y, const int *plan,
                                           const size_t *experts, int n, int k, int segments, int segment_blocks,
                                           int rows, int row_groups, int x_div, int slots_at) {
    using F = xk_format<XK_FORMAT>;
    auto it = xk_item();
    const int team = xk_team(it), lane = xk_lane(it);
    const int tiles = (n + 15) / 16, tiles_per_group = 8 / segments;
    const int group = (int)it.get_group(0);
    // Row groups of one tile run next to each other, so that the tile is still in a cache.
    const int row_group = group % row_groups, tile_group = group / row_groups;
    const int blocks = k / 32;

    const int *slots = nullptr;
    int first = row_group * R, count = rows - first;
    if (plan) {
        if (row_group >= plan[0])
            return;
        const int *entry = plan + 4 + 3 * row_group;
        w = (const uint32_t *)(global_words)experts[entry[0]];
        slots = plan + slots_at + entry[1];
        first = 0;
        count = entry[2];
    }
    count = count < R ? count : R;

    const int segment = team % segments;
    const int tile = tile_group * tiles_per_group + team / segments;
    const bool active = team < tiles_per_group * segments && tile < tiles;

    float acc[R];
    size_t x_row[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        acc[r] = 0.0f;
        int row = r < count ? r : 0;
        x_row[r] = slots ? (size_t)(slots[row] / x_div) : (size_t)(first + row);
    }
    if (active) {
        constexpr int unit_words = xk_unit_words<F>();
        const uint32_t *tile_base = w + (size_t)tile * (size_t)((blocks * 32 + F::unit - 1) / F::unit) * unit_words;
        const int b0 = segment * segment_blocks;
        const int b1 = b0 + segment_blocks < blocks ? b0 + segment_blocks : blocks;
        for (int b = b0; b < b1; b++) {
            const uint32_t *u = tile_base + (size_t)(b / (F::unit / 32)) * unit_words + F::scales * F::scale_bytes * 4;
#if XK_FORMAT <= XK_BF16
#pragma unroll 8
            for (int i = 0; i < 32; i++) {
                const float wv = F::at(u, i, lane);
#pragma unroll
                for (int r = 0; r < R; r++)
                    acc[r] = sycl::fma(wv, x[x_row[r] * k + b * 32 + i], acc[r]);
            }
#else
            xk_block blk;
            F::load(u, b % (F::unit / 32), lane, table, blk);
            const xk_codes<F> codes(blk);
#pragma unroll
            for (int r = 0; r < R; r++) {
                const int *xq = q + x_row[r] * (k / 4) + b * 8;
                int i0, i1;
                codes.sums(xq, i0, i1);
                const size_t at = x_row[r] * blocks + b;
                acc[r] = xk_add_block<F>(acc[r], blk, i0, i1, xq, d[at], s + at);
            }
#endif
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++)
        partial[(r * 8 + team) * 16 + lane] = acc[r];
    sycl::group_barrier(it.get_group());
    if (active && segment == 0 && tile * 16 + lane < n) {
#pragma unroll
        for (int r = 0; r < R; r++) {
            if (r < count) {
                float t = acc[r];
                for (int g = 1; g < segments; g++)
                    t = t + partial[(r * 8 + team + g) * 16 + lane];
                const size_t row = slots ? (size_t)slots[r] : (size_t)(first + r);
                y[row * n + tile * 16 + lane] = t;
            }
        }
    }
}

ex::work_group_static<float[8 * 16]> partial_r1;
ex::work_group_static<float[8 * 16 * 8]> partial_r8;

XK_KERNEL void matmul_r1(const uint32_t *w, const uint32_t *table, const float *x, const int *q, const float *d,
                         const int *s, float *y, const int *plan, const size_t *experts, int n, int k, int segments,
                         int segment_blocks, int rows, int row_groups, int x_div, int slots_at) {
    matmul<1>((float *)&partial_r1, w, table, x, q, d, s, y, plan, experts, n, k, segments, segment_blocks, rows,
              row_groups, x_div, slots_at);
}

XK_KERNEL void matmul_r8(const uint32_t *w, const uint32_t *table, const float *x, const int *q, const float *d,
                         const int *s, float *y, const int *plan, const size_t *experts, int n, int k, int segments,
                         int segment_blocks, int rows, int row_groups, int x_div, int slots_at) {
    matmul<8>((float *)&partial_r8, w, table, x, q, d, s, y, plan, experts, n, k, segments, segment_blocks, rows,
              row_groups, x_div, slots_at);
}
