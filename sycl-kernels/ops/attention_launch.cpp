#include "xk_ops.h"

#include "../runtime/runtime.hpp"

using namespace xk;

namespace {
// The kernels are built per cache type; their pointer arguments have one size whatever the type, so that void stands
// for both.
void check(const xk_attention_args &a) {
    if (a.tokens == 0)
        fail(XK_ERR_VALUE, "tokens", "1 or more", a.tokens);
    if (a.kv_heads == 0 || a.heads == 0 || a.heads % a.kv_heads != 0)
        fail(XK_ERR_VALUE, "heads", "a multiple of kv_heads", a.heads);
    if (a.rope_dims == 0 || a.rope_dims % 32 != 0)
        fail(XK_ERR_VALUE, "rope_dims", "a positive multiple of 32", a.rope_dims);
    if (a.ratio == 0)
        fail(XK_ERR_VALUE, "ratio", "1 or more", a.ratio);
    if (a.index_heads == 0)
        return;
    if (a.budget == 0)
        fail(XK_ERR_VALUE, "budget", "1 or more", a.budget);
    if (a.score_groups == 0)
        fail(XK_ERR_VALUE, "score_groups", "1 or more", a.score_groups);
    require(a.pool, "pool");
    require(a.score_kernel, "score_kernel");
    require(a.select, "select");
    require(a.pooled, "pooled");
    require(a.tail, "tail");
    require(a.score, "score");
    require(a.selected, "selected");
}
} // namespace

xk_status xk_op_attention(xk_queue *queue, const xk_attention_args *args) {
    return guard("xk_op_attention", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.prepare, "prepare");
        require(a.attend, "attend");
        require(a.start, "start");
        require(a.k_cache, "k_cache");
        require(a.v_cache, "v_cache");
        require(a.out.x, "out");
        check(a);
        const int tokens = int(a.tokens), ratio = int(a.ratio), rot = int(a.rope_dims), index_dim = int(a.index_dim);
        if (a.index_heads)
            launch(*queue, *a.pool, (size_t(a.tokens) / a.ratio + 1 + 7) / 8, 128, a.ik_raw,
                   static_cast<const float *>(a.tail), a.ik_norm, a.table, a.start, a.mean, a.pooled, index_dim, ratio,
                   rot, a.inv_ratio, a.inv_index_dim, a.eps, tokens);
        const size_t units = size_t(a.tokens) * (a.heads + 2 * a.kv_heads + a.index_heads + (a.index_heads ? 1 : 0));
        launch(*queue, *a.prepare, (units + 7) / 8, 128, a.qg, a.k, a.v, a.iq_raw, a.ik_raw, a.q_norm, a.k_norm,
               a.iq_norm, a.table, a.start, a.q, a.k_cache, a.v_cache, a.iq, a.tail, int(a.heads), int(a.kv_heads),
               int(a.index_heads), index_dim, ratio, rot, a.inv_head_dim, a.inv_index_dim, a.eps, tokens);
        if (a.index_heads) {
            launch(*queue, *a.score_kernel, size_t(a.tokens) * a.score_groups, 128, static_cast<const float *>(a.iq),
                   static_cast<const void *>(a.pooled), a.start, a.score, int(a.index_heads), index_dim, ratio,
                   int(a.budget), int(a.max_blocks), int(a.score_groups));
            launch(*queue, *a.select, a.tokens, 256, static_cast<const float *>(a.score), a.start, a.selected, ratio,
                   int(a.budget), int(a.max_blocks));
        }
        launch(*queue, *a.attend, size_t(a.tokens) * a.heads, 128, static_cast<const float *>(a.q), a.qg,
               static_cast<const void *>(a.k_cache), static_cast<const void *>(a.v_cache),
               static_cast<const int32_t *>(a.selected), a.start, a.out.x, a.out.q, a.out.d, a.out.s, int(a.heads),
               int(a.kv_heads), ratio, int(a.index_heads ? a.budget : 0), a.scale);
    });
}
