// op family : moe, routing and summing of experts (N5 "Experts" of docs/numerics.md)
// shapes    : logits f32 [T][E]; chosen i32 [T][K]; weights f32 [T][K]; experts' outputs f32 [T*K][d]; shared f32
// [T][d]; shared_gate f32 [T]; y f32 [T][d]
#include "../common/math.hpp"

// Softmax, the K most probable experts in descending order (ties to the lowest), weights renormalised. A team a token.
XK_KERNEL void moe_route(const float *logits, int *chosen, float *weights, int experts, int used, int tokens) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const int t_raw = (int)it.get_group(0) * 8 + xk_team(it);
    const bool live = t_raw < tokens;
    const int t = live ? t_raw : tokens - 1;
    const float *l = logits + (size_t)t * experts;
    float top = -3.0e38f;
    for (int i = lane; i < experts; i += 16)
        top = xk_max(top, l[i]);
    top = xk_max16(sg, top);
    float z = 0.0f;
    for (int i = lane; i < experts; i += 16)
        z = z + xk_exp(l[i] - top);
    const float inv = xk_recip(xk_tree16(sg, z));
    float last = 3.0e38f, sum = 0.0f;
    int last_index = -1;
    for (int k = 0; k < used; k++) {
        float best = -1.0f;
        int best_index = experts;
        for (int i = lane; i < experts; i += 16) {
            const float v = xk_exp(l[i] - top) * inv;
            const bool left = v < last || (v == last && i > last_index);
            if (left && v > best) {
                best = v;
                best_index = i;
            }
        }
#pragma unroll
        for (int m = 8; m >= 1; m >>= 1) {
            const float other = sycl::permute_group_by_xor(sg, best, m);
            const int other_index = sycl::permute_group_by_xor(sg, best_index, m);
            const bool take = other > best || (other == best && other_index < best_index);
            best = take ? other : best;
            best_index = take ? other_index : best_index;
        }
        last = best;
        last_index = best_index;
        sum = k == 0 ? best : sum + best;
        if (live && lane == 0) {
            // A row of NaN has no best; expert 0 keeps every later index in range.
            chosen[(size_t)t * used + k] = best_index < experts ? best_index : 0;
            weights[(size_t)t * used + k] = best;
        }
    }
    const float scale = xk_recip(xk_max(sum, 6.103515625e-5f));
    if (live && lane == 0)
        for (int k = 0; k < used; k++)
            weights[(size_t)t * used + k] = weights[(size_t)t * used + k] * scale;
}

ex::work_group_static<int[1024 * 2]> plan_scan;

// Groups the chosen slots by expert into the plan of op family matmul: entries of at most `rows` slots, slots
// ascending. One group; E <= 1024.
XK_KERNEL void moe_plan(const int *chosen, int *plan, int experts, int slots, int rows, int slots_at) {
    auto it = xk_item();
    const int lid = (int)it.get_local_id(0), items = (int)it.get_local_range(0);
    int *slot_at = (int *)&plan_scan, *entry_at = slot_at + 1024;
    for (int e = lid; e < experts; e += items) {
        int c = 0;
        for (int s = 0; s < slots; s++)
            c += chosen[s] == e ? 1 : 0;
        slot_at[e] = c;
    }
    sycl::group_barrier(it.get_group());
    if (lid == 0) {
        int s = 0, n = 0;
        for (int e = 0; e < experts; e++) {
            const int c = slot_at[e];
            slot_at[e] = s;
            entry_at[e] = n;
            s += c;
            n += (c + rows - 1) / rows;
        }
        plan[0] = n;
    }
    sycl::group_barrier(it.get_group());
    for (int e = lid; e < experts; e += items) {
        const int first = slot_at[e], end = e + 1 < experts ? slot_at[e + 1] : slots;
        if (first == end)
            continue;
        int at = first;
        for (int s = 0; s < slots; s++)
            if (chosen[s] == e)
                plan[slots_at + at++] = s;
        int n = entry_at[e];
        for (int f = first; f < end; f += rows, n++) {
            plan[4 + 3 * n] = e;
            plan[4 + 3 * n + 1] = f;
            plan[4 + 3 * n + 2] = end - f < rows ? end - f : rows;
        }
    }
}

// y = sum of the experts by rank, then the gated shared expert. An item a value.
XK_KERNEL void moe_combine(const float *down, const float *weights, const float *shared, const float *shared_gate,
                           float *y, int used, int d, int tokens) {
    auto it = xk_item();
    const size_t i = it.get_global_id(0);
    if (i >= (size_t)tokens * d)
        return;
    const size_t t = i / d, col = i % d;
    float acc = 0.0f;
    for (int k = 0; k < used; k++)
        acc = sycl::fma(weights[t * used + k], down[(t * used + k) * d + col], acc);
    y[i] = sycl::fma(xk_sigmoid(shared_gate[t]), shared[i], acc);
}
