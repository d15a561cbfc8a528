// op family : act, element-wise steps between matrices, with the quantisation of N4 of docs/numerics.md
// shapes    : a, b f32 [rows][k]; out and its codes [rows][k]; k a multiple of 32
// launch    : 128 items, 8 teams of 16 lanes, a team a block of 32
#include "../common/math.hpp"

// Stores value(i) for the two elements i of the lane in its team's block.
template <class Value>
static inline void store_values(float *x, int8_t *q, float *d, int *s, size_t blocks, Value value) {
    auto it = xk_item();
    const auto sg = xk_team_group(it);
    const int lane = xk_lane(it);
    const size_t block = it.get_group(0) * 8 + xk_team(it);
    if (block >= blocks)
        return;
    const size_t at = block * 32 + lane;
    xk_store_block(sg, lane, {x, q, d, s}, block * 32, value(at), value(at + 16));
}

// out = silu(a * scale)
XK_KERNEL void act_silu(const float *a, float scale, float *x, int8_t *q, float *d, int *s, size_t blocks) {
    store_values(x, q, d, s, blocks, [=](size_t i) { return xk_silu(a[i] * scale); });
}

// out = silu(a) * b
XK_KERNEL void act_swiglu(const float *a, const float *b, float *x, int8_t *q, float *d, int *s, size_t blocks) {
    store_values(x, q, d, s, blocks, [=](size_t i) { return xk_silu(a[i]) * b[i]; });
}

// out = a
XK_KERNEL void act_copy(const float *a, float *x, int8_t *q, float *d, int *s, size_t blocks) {
    store_values(x, q, d, s, blocks, [=](size_t i) { return a[i]; });
}
