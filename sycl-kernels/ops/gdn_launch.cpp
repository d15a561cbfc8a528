#include "xk_ops.h"

#include "../runtime/runtime.hpp"

using namespace xk;

namespace {
void check_heads(uint32_t tokens, uint32_t key_heads, uint32_t value_heads, uint32_t taps) {
    if (tokens == 0)
        fail(XK_ERR_VALUE, "tokens", "1 or more", tokens);
    if (key_heads == 0)
        fail(XK_ERR_VALUE, "key_heads", "1 or more", key_heads);
    if (value_heads == 0 || value_heads % key_heads != 0)
        fail(XK_ERR_VALUE, "value_heads", "a multiple of key_heads", value_heads);
    if (taps < 2 || taps > 8)
        fail(XK_ERR_VALUE, "taps", "2 to 8", taps);
}
} // namespace

xk_status xk_op_gdn_conv(xk_queue *queue, const xk_gdn_conv_args *args) {
    return guard("xk_op_gdn_conv", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        require(a.u, "u");
        require(a.window, "window");
        require(a.y, "y");
        require(a.gates, "gates");
        check_heads(a.tokens, a.key_heads, a.value_heads, a.taps);
        if (a.gate_group == 0)
            fail(XK_ERR_VALUE, "gate_group", "1 or more", a.gate_group);
        const size_t units = size_t(a.tokens) * (2 * a.key_heads + a.value_heads + 1);
        launch(*queue, *a.kernel, (units + 7) / 8, 128, a.u, a.window, a.conv, a.beta, a.alpha, a.ssm_a, a.dt, a.y,
               a.gates, int(a.key_heads), int(a.value_heads), int(a.gate_group), int(a.gate_stride), int(a.gate_row),
               int(a.taps), a.eps, int(a.tokens));
    });
}

xk_status xk_op_gdn_step(xk_queue *queue, const xk_gdn_step_args *args) {
    return guard("xk_op_gdn_step", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        require(a.y, "y");
        require(a.gates, "gates");
        require(a.u, "u");
        require(a.window, "window");
        require(a.state, "state");
        require(a.o, "o");
        check_heads(a.tokens, a.key_heads, a.value_heads, a.taps);
        // 32 teams of 4 state rows a head, 8 teams a group.
        launch(*queue, *a.kernel, size_t(a.value_heads) * 4, 128, a.y, a.gates, a.u, a.window, a.state, a.o,
               int(a.key_heads), int(a.value_heads), int(a.grouped), int(a.taps), a.scale, int(a.tokens));
    });
}

xk_status xk_op_gdn_norm(xk_queue *queue, const xk_gdn_norm_args *args) {
    return guard("xk_op_gdn_norm", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        require(a.o, "o");
        require(a.z, "z");
        require(a.norm, "norm");
        require(a.out.x, "out");
        if (a.rows == 0)
            fail(XK_ERR_VALUE, "rows", "1 or more", a.rows);
        launch(*queue, *a.kernel, (size_t(a.rows) + 7) / 8, 128, a.o, a.z, a.norm, a.out.x, a.out.q, a.out.d, a.out.s,
               a.inv_head, a.eps, int(a.silu), int(a.rows));
    });
}
