/*
 * xk_ops.h: the operations that the engine launches, one struct and one function each.
 *
 * Every op call checks its arguments, enqueues its kernels on the queue and returns. The kernel handles and device
 * pointers in the arguments must stay valid until the work is done. The rules of xk.h hold.
 */
#ifndef XK_OPS_H
#define XK_OPS_H

#include "xk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- selftest -------------------------------------------------------------------------------------------------- */

#define XK_CANARY_OUTPUTS 6u

/* Arithmetic whose bits must be the same on every device; see sycl-kernels/ops/canary.cpp for the outputs. */
typedef struct xk_canary_args {
    uint32_t struct_size;
    uint32_t n;        /* elements; a multiple of 64 */
    xk_kernel *kernel; /* "canary" of module "selftest" */
    const float *a;    /* [n] */
    const float *b;    /* [n] */
    float *out;        /* [XK_CANARY_OUTPUTS, n] */
} xk_canary_args;

xk_status xk_op_canary(xk_queue *queue, const xk_canary_args *args);

#ifdef __cplusplus
}
#endif

#endif
