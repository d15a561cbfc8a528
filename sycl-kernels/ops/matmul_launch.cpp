#include "xk_ops.h"

#include "../runtime/runtime.hpp"

using namespace xk;

xk_status xk_op_matmul(xk_queue *queue, const xk_matmul_args *args) {
    return guard("xk_op_matmul", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        a.plan ? require(a.experts, "experts") : require(a.weights, "weights");
        require(a.x.x, "x");
        require(a.y, "y");
        if (a.n == 0)
            fail(XK_ERR_VALUE, "n", "1 or more", a.n);
        if (a.k == 0 || a.k % 32 != 0)
            fail(XK_ERR_VALUE, "k", "a positive multiple of 32", a.k);
        if (a.rows_per_group == 0)
            fail(XK_ERR_VALUE, "rows_per_group", "1 or more", a.rows_per_group);
        if (a.plan && (a.max_entries == 0 || a.x_div == 0))
            fail(XK_ERR_VALUE, "max_entries and x_div", "1 or more", 0);
        if (!a.plan && a.rows == 0)
            fail(XK_ERR_VALUE, "rows", "1 or more", a.rows);
        // N4: segments depend on K alone.
        const uint32_t blocks = a.k / 32, segment_blocks = 8 * ((blocks + 63) / 64);
        const uint32_t segments = (blocks + segment_blocks - 1) / segment_blocks;
        const uint32_t tiles = (a.n + 15) / 16, tiles_per_group = 8 / segments;
        const uint32_t tile_groups = (tiles + tiles_per_group - 1) / tiles_per_group;
        const uint32_t row_groups = a.plan ? a.max_entries : (a.rows + a.rows_per_group - 1) / a.rows_per_group;
        launch(*queue, *a.kernel, size_t(tile_groups) * row_groups, 128, static_cast<const uint32_t *>(a.weights),
               static_cast<const uint32_t *>(a.codebook), const_cast<const float *>(a.x.x),
               reinterpret_cast<const int *>(a.x.q), const_cast<const float *>(a.x.d), const_cast<const int *>(a.x.s),
               a.y, a.plan, reinterpret_cast<const size_t *>(a.experts), int(a.n), int(a.k), int(segments),
               int(segment_blocks), int(a.rows), int(row_groups), int(a.x_div), int(a.slots_at));
    });
}
