#include "xk_ops.h"

#include "../runtime/runtime.hpp"

using namespace xk;

xk_status xk_op_ple(xk_queue *queue, const xk_ple_args *args) {
    return guard("xk_op_ple", [&] {
        const auto a = read_struct(args, "args");
        require(queue, "queue");
        require(a.gate, "gate");
        require(a.conv_kernel, "conv_kernel");
        require(a.r, "r");
        require(a.key, "key");
        require(a.value, "value");
        require(a.n, "n");
        require(a.history, "history");
        if (a.y)
            require(a.weights, "weights");
        if (a.tokens == 0)
            fail(XK_ERR_VALUE, "tokens", "1 or more", a.tokens);
        const size_t rows = size_t(a.tokens) * a.streams, channels = size_t(a.streams) * a.hidden;
        launch(*queue, *a.gate, (rows + 7) / 8, 128, a.r, a.y, a.weights, a.key, a.value, a.norm_key, a.norm_query,
               a.norm_conv, a.n, int(a.streams), int(a.hidden), a.inv_hidden, a.inv_sqrt_hidden, a.eps, int(rows));
        launch(*queue, *a.conv_kernel, (channels + 127) / 128, 128, a.r, static_cast<const float *>(a.n), a.conv,
               a.history, int(channels), int(a.taps), int(a.dilation), int(a.tokens));
    });
}
