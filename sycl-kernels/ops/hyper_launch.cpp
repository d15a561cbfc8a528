#include "xk_ops.h"

#include "../runtime/runtime.hpp"

using namespace xk;

namespace {
void check_streams(uint32_t tokens, uint32_t streams, uint32_t hidden) {
    if (tokens == 0)
        fail(XK_ERR_VALUE, "tokens", "1 or more", tokens);
    if (streams == 0 || streams > 16)
        fail(XK_ERR_VALUE, "streams", "1 to 16", streams);
    if (hidden == 0 || hidden % 32 != 0)
        fail(XK_ERR_VALUE, "hidden", "a positive multiple of 32", hidden);
}
} // namespace

xk_status xk_op_hyper_start(xk_queue *queue, const xk_hyper_start_args *args) {
    return guard("xk_op_hyper_start", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        require(a.x, "x");
        require(a.r, "r");
        check_streams(a.tokens, a.streams, a.hidden);
        launch(*queue, *a.kernel, (size_t(a.tokens) * a.hidden + 127) / 128, 128, a.x, a.r, int(a.streams),
               int(a.hidden), int(a.tokens));
    });
}

xk_status xk_op_hyper_norm(xk_queue *queue, const xk_hyper_norm_args *args) {
    return guard("xk_op_hyper_norm", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        require(a.r, "r");
        require(a.norm, "norm");
        require(a.out.x, "out");
        check_streams(a.tokens, a.streams, a.hidden);
        const size_t rows = size_t(a.tokens) * a.streams;
        launch(*queue, *a.kernel, (rows + 7) / 8, 128, a.r, a.y, a.weights, a.norm, a.out.x, a.out.q, a.out.d, a.out.s,
               int(a.streams), int(a.hidden), a.inv_hidden, a.eps, int(rows));
    });
}

xk_status xk_op_hyper_mix(xk_queue *queue, const xk_hyper_mix_args *args) {
    return guard("xk_op_hyper_mix", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.kernel, "kernel");
        require(a.a, "a");
        require(a.x, "x");
        require(a.out.x, "out");
        if (a.inject)
            require(a.weights, "weights");
        check_streams(a.tokens, a.streams, a.hidden);
        const size_t blocks = size_t(a.tokens) * (a.hidden / 32);
        launch(*queue, *a.kernel, (blocks + 7) / 8, 128, a.a, a.x, a.inject, a.weights, a.out.x, a.out.q, a.out.d,
               a.out.s, int(a.streams), int(a.hidden), a.inv_streams, int(a.tokens));
    });
}
