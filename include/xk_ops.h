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

/* ---- activations ----------------------------------------------------------------------------------------------- */

/* A matrix of activations as the matrix kernels read it: docs/numerics.md N4. */
typedef struct xk_rows {
    float *x;   /* [rows, K] */
    int8_t *q;  /* [rows, K] */
    float *d;   /* [rows, K/32] */
    int32_t *s; /* [rows, K/32] */
} xk_rows;

/* ---- matmul: y[t] = W x[t] --------------------------------------------------------------------------------------- */

typedef struct xk_matmul_args {
    uint32_t struct_size;
    uint32_t n;              /* N */
    uint32_t k;              /* K, a multiple of 32 */
    uint32_t rows;           /* rows of x; dense only */
    uint32_t rows_per_group; /* as the kernel was built: 1 or 8 */
    uint32_t max_entries;    /* entries the plan can have; experts only */
    uint32_t x_div;          /* slot / x_div is the row of x; experts only */
    uint32_t slots_at;       /* where the plan's slots start, in int32; experts only */
    const uint64_t *experts; /* [E] addresses of packed tiles [ceil(N/16), K/unit], on the card or in pinned host
                                memory; experts only */
    xk_kernel *kernel;       /* "matmul_<format>_r<rows_per_group>" */
    const void *weights;     /* packed tiles [ceil(N/16), K/unit]; dense only */
    const void *codebook;    /* table of the format, or null */
    xk_rows x;
    float *y;            /* [rows or slots, N] */
    const int32_t *plan; /* of xk_op_moe_plan; null for a dense matrix */
} xk_matmul_args;

xk_status xk_op_matmul(xk_queue *queue, const xk_matmul_args *args);

/* ---- hyper: streams around a block ------------------------------------------------------------------------------- */

typedef struct xk_hyper_start_args {
    uint32_t struct_size;
    uint32_t tokens;  /* T */
    uint32_t streams; /* hc */
    uint32_t hidden;  /* d */
    xk_kernel *kernel;
    const float *x; /* [T, d] */
    float *r;       /* [T, hc, d] */
} xk_hyper_start_args;

xk_status xk_op_hyper_start(xk_queue *queue, const xk_hyper_start_args *args);

typedef struct xk_hyper_norm_args {
    uint32_t struct_size;
    uint32_t tokens;
    uint32_t streams;
    uint32_t hidden; /* d, a multiple of 32 */
    float inv_hidden;
    float eps;
    xk_kernel *kernel;
    float *r;             /* [T, hc, d], updated when y is given */
    const float *y;       /* [T, d] pending output, or null */
    const float *weights; /* [T, hc]; null for weights of 1 */
    const float *norm;    /* [hc, d] */
    xk_rows out;          /* [T, hc*d] */
} xk_hyper_norm_args;

xk_status xk_op_hyper_norm(xk_queue *queue, const xk_hyper_norm_args *args);

typedef struct xk_hyper_mix_args {
    uint32_t struct_size;
    uint32_t tokens;
    uint32_t streams; /* hc, at most 16 */
    uint32_t hidden;
    float inv_streams;
    uint32_t reserved;
    xk_kernel *kernel;
    const float *a;      /* [T, hc*d] */
    const float *x;      /* [T, hc*d] normalised streams */
    const float *inject; /* [T, hc], or null for the final mixer */
    float *weights;      /* [T, hc] */
    xk_rows out;         /* [T, d] */
} xk_hyper_mix_args;

xk_status xk_op_hyper_mix(xk_queue *queue, const xk_hyper_mix_args *args);

/* ---- act: element-wise steps ------------------------------------------------------------------------------------- */

#define XK_ACT_SILU 0u   /* silu(a * scale) */
#define XK_ACT_SWIGLU 1u /* silu(a) * b */
#define XK_ACT_COPY 2u   /* a */

typedef struct xk_act_args {
    uint32_t struct_size;
    uint32_t kind; /* XK_ACT_... */
    float scale;
    uint32_t reserved;
    uint64_t elements; /* a multiple of 32 */
    xk_kernel *kernel;
    const float *a;
    const float *b;
    xk_rows out;
} xk_act_args;

xk_status xk_op_act(xk_queue *queue, const xk_act_args *args);

/* ---- gdn: gated delta net ---------------------------------------------------------------------------------------- */

typedef struct xk_gdn_conv_args {
    uint32_t struct_size;
    uint32_t tokens;
    uint32_t key_heads;   /* Nk */
    uint32_t value_heads; /* Nv */
    uint32_t taps;
    float eps;
    uint32_t gate_group; /* gates of value head h lie at h / gate_group * gate_stride + h mod gate_group of a row */
    uint32_t gate_stride;
    uint32_t gate_row; /* length of a row of beta and alpha */
    uint32_t reserved;
    xk_kernel *kernel;
    const float *u;      /* [T, C], C = (2 Nk + Nv) * 128 */
    const float *window; /* [taps-1, C] */
    const float *conv;   /* [C, taps] */
    const float *beta;   /* [T, gate_row] */
    const float *alpha;  /* [T, gate_row], may start within beta's rows */
    const float *ssm_a;  /* [Nv] */
    const float *dt;     /* [Nv] */
    float *y;            /* [T, C] */
    float *gates;        /* [T, Nv, 2] */
} xk_gdn_conv_args;

xk_status xk_op_gdn_conv(xk_queue *queue, const xk_gdn_conv_args *args);

typedef struct xk_gdn_step_args {
    uint32_t struct_size;
    uint32_t tokens;
    uint32_t key_heads;
    uint32_t value_heads;
    uint32_t taps;
    float scale;
    uint32_t grouped; /* 1: value head h reads key head h / (Nv / Nk); 0: h mod Nk */
    uint32_t reserved;
    xk_kernel *kernel;
    const float *y;     /* [T, C] */
    const float *gates; /* [T, Nv, 2] */
    const float *u;     /* [T, C] */
    float *window;      /* [taps-1, C], moved on by T */
    float *state;       /* [Nv, 128, 128], moved on by T */
    float *o;           /* [T, Nv, 128] */
} xk_gdn_step_args;

xk_status xk_op_gdn_step(xk_queue *queue, const xk_gdn_step_args *args);

typedef struct xk_gdn_norm_args {
    uint32_t struct_size;
    uint32_t rows; /* T * Nv */
    float inv_head;
    float eps;
    uint32_t silu; /* gate by silu(z) instead of sigmoid(z) */
    uint32_t reserved;
    xk_kernel *kernel;
    const float *o;    /* [T, Nv, 128] */
    const float *z;    /* [T, Nv, 128] */
    const float *norm; /* [128] */
    xk_rows out;       /* [T, Nv*128] */
} xk_gdn_norm_args;

xk_status xk_op_gdn_norm(xk_queue *queue, const xk_gdn_norm_args *args);

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* What the five kernels of the family share. Caches are of the type that the kernels were built for. */
typedef struct xk_attention_args {
    uint32_t struct_size;
    uint32_t tokens;
    uint32_t heads;       /* H */
    uint32_t kv_heads;    /* Hkv */
    uint32_t index_heads; /* 0 in a layer without sparse selection */
    uint32_t index_dim;   /* Di */
    uint32_t ratio;       /* tokens a block; 1 without sparse selection */
    uint32_t budget;      /* blocks; 0 without sparse selection */
    uint32_t rope_dims;   /* R, a multiple of 32 */
    uint32_t max_blocks;  /* row length of score */
    float eps;
    float inv_head_dim;
    float inv_index_dim;
    float inv_ratio;
    float scale;           /* 1/sqrt(D) */
    uint32_t score_groups; /* groups a token in the scoring kernel */
    xk_kernel *pool;       /* index_pool; this and the next three null without sparse selection, but prepare */
    xk_kernel *prepare;    /* attention_prepare */
    xk_kernel *score_kernel;
    xk_kernel *select;
    xk_kernel *attend;
    const int32_t *start; /* [1] position of the first token */
    const float *table;   /* [ctx, R] */
    const float *qg;      /* [T, H, 2, D] */
    const float *k;       /* [T, Hkv, D] */
    const float *v;       /* [T, Hkv, D] */
    const float *iq_raw;  /* [T, Hx, Di] */
    const float *ik_raw;  /* [T, Di] */
    const float *q_norm;  /* [D] */
    const float *k_norm;  /* [D] */
    const float *iq_norm; /* [Di] */
    const float *ik_norm; /* [Di] */
    void *k_cache;        /* [ctx, Hkv, D] */
    void *v_cache;        /* [ctx, Hkv, D] */
    void *pooled;         /* [ctx/ratio, Di] */
    float *tail;          /* [ratio, Di] */
    float *q;             /* [T, H, D] scratch, as the rest */
    float *iq;            /* [T, Hx, Di] */
    float *mean;          /* [T/ratio + 2, Di] */
    float *score;         /* [T, max_blocks] */
    int32_t *selected;    /* [T, budget] */
    xk_rows out;          /* [T, H*D] */
} xk_attention_args;

xk_status xk_op_attention(xk_queue *queue, const xk_attention_args *args);

/* ---- moe --------------------------------------------------------------------------------------------------------- */

typedef struct xk_moe_route_args {
    uint32_t struct_size;
    uint32_t tokens;
    uint32_t experts;        /* E, at most 1024 */
    uint32_t used;           /* K */
    uint32_t rows_per_group; /* of the matmul kernels that will read the plan */
    uint32_t slots_at;       /* where the plan's slots start, in int32 */
    xk_kernel *route;
    xk_kernel *plan_kernel;
    const float *logits; /* [T, E] */
    int32_t *chosen;     /* [T, K] */
    float *weights;      /* [T, K] */
    int32_t *plan;
} xk_moe_route_args;

xk_status xk_op_moe_route(xk_queue *queue, const xk_moe_route_args *args);

typedef struct xk_moe_combine_args {
    uint32_t struct_size;
    uint32_t tokens;
    uint32_t used;
    uint32_t hidden;
    xk_kernel *kernel;
    const float *down;        /* [T, K, d] */
    const float *weights;     /* [T, K] */
    const float *shared;      /* [T, d] */
    const float *shared_gate; /* [T] */
    float *y;                 /* [T, d] */
} xk_moe_combine_args;

xk_status xk_op_moe_combine(xk_queue *queue, const xk_moe_combine_args *args);

/* ---- ple --------------------------------------------------------------------------------------------------------- */

typedef struct xk_ple_args {
    uint32_t struct_size;
    uint32_t tokens;
    uint32_t streams;
    uint32_t hidden;
    uint32_t taps;
    uint32_t dilation;
    float inv_hidden;
    float inv_sqrt_hidden;
    float eps;
    uint32_t reserved;
    xk_kernel *gate;
    xk_kernel *conv_kernel;
    float *r;             /* [T, hc, d] */
    const float *y;       /* [T, d] pending output, or null */
    const float *weights; /* [T, hc] */
    const float *key;     /* [T, hc*d] */
    const float *value;   /* [T, d] */
    const float *norm_key;
    const float *norm_query;
    const float *norm_conv;
    const float *conv; /* [hc*d, taps] */
    float *n;          /* [T, hc*d] scratch */
    float *history;    /* [(taps-1)*dilation, hc*d], moved on by T */
} xk_ple_args;

xk_status xk_op_ple(xk_queue *queue, const xk_ple_args *args);

#ifdef __cplusplus
}
#endif

#endif
