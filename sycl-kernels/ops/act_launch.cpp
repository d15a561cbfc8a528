#include "xk_ops.h"

#include "../runtime/runtime.hpp"

using namespace xk;

xk_status xk_op_act(xk_queue *queue, const xk_act_args *args) {
    return guard("xk_op_act", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        require(a.a, "a");
        require(a.out.x, "out");
        if (a.elements == 0 || a.elements % 32 != 0)
            fail(XK_ERR_VALUE, "elements", "a positive multiple of 32", a.elements);
        const size_t blocks = a.elements / 32, groups = (blocks + 7) / 8;
        switch (a.kind) {
        case XK_ACT_SILU:
            launch(*queue, *a.kernel, groups, 128, a.a, a.scale, a.out.x, a.out.q, a.out.d, a.out.s, blocks);
            break;
        case XK_ACT_SWIGLU:
            require(a.b, "b");
            launch(*queue, *a.kernel, groups, 128, a.a, a.b, a.out.x, a.out.q, a.out.d, a.out.s, blocks);
            break;
        case XK_ACT_COPY:
            launch(*queue, *a.kernel, groups, 128, a.a, a.out.x, a.out.q, a.out.d, a.out.s, blocks);
            break;
        default:
            fail(XK_ERR_VALUE, "kind", "0 to 2", a.kind);
        }
    });
}
