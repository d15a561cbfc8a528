#include "xk_ops.h"

#include "../runtime/runtime.hpp"

using namespace xk;

xk_status xk_op_moe_route(xk_queue *queue, const xk_moe_route_args *args) {
    return guard("xk_op_moe_route", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.route, "route");
        require(a.plan_kernel, "plan_kernel");
        require(a.logits, "logits");
        require(a.chosen, "chosen");
        require(a.weights, "weights");
        require(a.plan, "plan");
        if (a.tokens == 0)
            fail(XK_ERR_VALUE, "tokens", "1 or more", a.tokens);
        if (a.experts == 0 || a.experts > 1024)
            fail(XK_ERR_VALUE, "experts", "1 to 1024", a.experts);
        if (a.used == 0 || a.used > a.experts)
            fail(XK_ERR_VALUE, "used", "1 to experts", a.used);
        if (a.rows_per_group == 0)
            fail(XK_ERR_VALUE, "rows_per_group", "1 or more", a.rows_per_group);
        launch(*queue, *a.route, (size_t(a.tokens) + 7) / 8, 128, a.logits, a.chosen, a.weights, int(a.experts),
               int(a.used), int(a.tokens));
        launch(*queue, *a.plan_kernel, 1, 256, static_cast<const int *>(a.chosen), a.plan, int(a.experts),
               int(a.tokens * a.used), int(a.rows_per_group), int(a.slots_at));
    });
}

xk_status xk_op_moe_combine(xk_queue *queue, const xk_moe_combine_args *args) {
    return guard("xk_op_moe_combine", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        require(a.down, "down");
        require(a.weights, "weights");
        require(a.shared, "shared");
        require(a.shared_gate, "shared_gate");
        require(a.y, "y");
        if (a.tokens == 0)
            fail(XK_ERR_VALUE, "tokens", "1 or more", a.tokens);
        launch(*queue, *a.kernel, (size_t(a.tokens) * a.hidden + 127) / 128, 128, a.down, a.weights, a.shared,
               a.shared_gate, a.y, int(a.used), int(a.hidden), int(a.tokens));
    });
}
