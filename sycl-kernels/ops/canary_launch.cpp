#include "xk_ops.h"

#include "../runtime/runtime.hpp"

using namespace xk;

xk_status xk_op_canary(xk_queue *queue, const xk_canary_args *args) {
    return guard("xk_op_canary", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        require(a.a, "a");
        require(a.b, "b");
        require(a.out, "out");
        if (a.n == 0 || a.n % 64 != 0) {
            fail(XK_ERR_VALUE, "n", "a positive multiple of 64", a.n);
        }
        launch(*queue, *a.kernel, a.n / 64, 64, a.a, a.b, a.out, a.n);
    });
}
