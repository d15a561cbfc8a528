/*
 * xk.h: the C ABI between the Rust engine and the SYCL runtime.
 *
 * Rules that hold for every function:
 *  - Results go through out-parameters, which are written only when the call returns XK_OK.
 *  - A function that fails leaves a text for xk_last_error() on the calling thread.
 *  - Nothing throws, exits, aborts or prints.
 *  - destroy(NULL) does nothing. A destroy call waits for the work in flight that could use the object.
 *    A child keeps what it needs of its parent alive, so that the order of destruction is free.
 *  - Threads: calls on different handles may run at the same time; the caller serialises calls on one handle.
 *    Functions marked "Threads: any" have no such limit.
 *  - Sized structs: the caller sets struct_size to sizeof(the struct). Fields that an older caller does not have
 *    read as zero, and zero is the default of every field. Reserved fields must be zero.
 *  - Queue calls enqueue and return. A device error shows at the next wait. The first failing operation poisons its
 *    queue: every later call on it returns the same status and text.
 */
#ifndef XK_H
#define XK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XK_ABI_MAJOR 1u
#define XK_ABI_MINOR 1u

typedef int32_t xk_status;

#define XK_OK 0
/* 1-9: the caller's mistakes. */
#define XK_ERR_NULL 1        /* a required pointer is null */
#define XK_ERR_VALUE 2       /* a value is out of range */
#define XK_ERR_STRUCT 3      /* struct_size is not one that this library knows */
#define XK_ERR_UNSUPPORTED 4 /* known, but not possible on this device or in this version */
#define XK_ERR_NOT_FOUND 5   /* no object of that name or index */
#define XK_ERR_STATE 6       /* not now: for instance a wait while a graph is being recorded */
/* 10-19: resources. */
#define XK_ERR_HOST_MEMORY 10
#define XK_ERR_DEVICE_MEMORY 11
/* 20-29: the device. */
#define XK_ERR_BUILD 20 /* device code did not build */
#define XK_ERR_DEVICE 21
#define XK_ERR_DEVICE_LOST 22
/* 90 and above: mistakes of this library. */
#define XK_ERR_INTERNAL 90

typedef struct xk_card xk_card;
typedef struct xk_arena xk_arena;
typedef struct xk_queue xk_queue;
typedef struct xk_event xk_event;
typedef struct xk_module xk_module;
typedef struct xk_kernel xk_kernel;
typedef struct xk_graph xk_graph;

/* ---- version and errors ---------------------------------------------------------------------------------------- */

/* The version this library was built with. Threads: any. */
xk_status xk_abi_version(uint32_t *major, uint32_t *minor);

/*
 * Copies the text of this thread's last failed call into buf, cut to cap bytes with a closing zero, and returns the
 * whole length without the zero. buf may be null when cap is 0. Threads: any.
 */
size_t xk_last_error(char *buf, size_t cap);

/* ---- devices --------------------------------------------------------------------------------------------------- */

typedef struct xk_device_info {
    uint32_t struct_size;
    uint32_t is_cpu; /* 1 or 0 */
    uint32_t compute_units;
    uint32_t sub_group_sizes; /* bit n is set when sub-groups of n lanes are supported; n of 1 to 31 */
    uint32_t has_sub_group_32;
    uint32_t reserved;
    uint64_t global_bytes;
    uint64_t max_alloc_bytes; /* largest single allocation that the driver promises */
    uint64_t local_bytes;     /* local memory of a work-group */
    char name[128];           /* UTF-8, zero-terminated, cut if longer; so are the next three */
    char vendor[64];
    char driver[64];
    char backend[32]; /* "opencl", "level_zero" or "cuda" */
    /*
     * Device memory that is free at the moment of the call, or 0 if the driver does not say. Level Zero says it only in
     * a process whose environment has ZES_ENABLE_SYSMAN=1; the OpenCL CPU device never does.
     */
    uint64_t free_bytes;
} xk_device_info;

/* How many usable devices there are: Level Zero and CUDA GPUs first, then the OpenCL CPU. Threads: any. */
xk_status xk_device_count(uint32_t *count);

/* Facts about one device, asked anew at every call. info->struct_size is read and kept. Threads: any. */
xk_status xk_device_info_get(uint32_t index, xk_device_info *info);

/* ---- cards ----------------------------------------------------------------------------------------------------- */

typedef struct xk_card_desc {
    uint32_t struct_size;
    uint32_t device_index;
    uint32_t part_count; /* 0 or 1: the whole device; n: part_index of n parts */
    uint32_t part_index;
} xk_card_desc;

/*
 * Parts are for tests of several cards on one processor. Each is a card with a context of its own.
 *  - Up to as many parts as there are compute units are sub-devices of equally many units each.
 *  - More parts share the units: part i is the sub-device of unit i modulo the number of units.
 *  - A device that cannot be split into equal parts, as a GPU or a single unit, is shared whole by all parts.
 */

/* One device with a context of its own. The caller owns *out. Threads: any. */
xk_status xk_card_create(const xk_card_desc *desc, xk_card **out);

/*
 * Whether a queue of `to` may name device memory of `from` in xk_queue_copy_peer: 1 or 0. 1 for one card, for parts of
 * the OpenCL CPU device, and for CUDA devices whose driver says so. 0 for two cards of Level Zero: their contexts are
 * separate, and drivers are known that report peer access where copies are wrong. A 1 is what the driver says;
 * only a comparison of copied data proves it. Threads: any.
 */
xk_status xk_card_peer(xk_card *to, xk_card *from, uint32_t *possible);

/* Drops the caller's hold on the card. */
void xk_card_destroy(xk_card *card);

/* ---- arenas ---------------------------------------------------------------------------------------------------- */

#define XK_MEMORY_DEVICE 0u
#define XK_MEMORY_HOST 1u /* pinned host memory that the card can read and write */

/* One allocation of `bytes` bytes, at least 64-byte aligned. The caller owns *out. Threads: any. */
xk_status xk_arena_create(xk_card *card, uint64_t bytes, uint32_t kind, xk_arena **out);

/* First address of the arena, the same for host and device; the host may use it only for XK_MEMORY_HOST. */
xk_status xk_arena_base(const xk_arena *arena, void **out);

/* Waits for every queue of the card, then frees the memory. Graphs that use it must not be launched again. */
void xk_arena_destroy(xk_arena *arena);

/* ---- queues ---------------------------------------------------------------------------------------------------- */

#define XK_QUEUE_PROFILING 1u /* events of this queue carry times */

/* An in-order queue. The caller owns *out. Threads: any. */
xk_status xk_queue_create(xk_card *card, uint32_t flags, xk_queue **out);

/* Waits for the work in flight, then frees the queue. */
void xk_queue_destroy(xk_queue *queue);

/* Waits until everything enqueued so far is done. */
xk_status xk_queue_wait(xk_queue *queue);

/*
 * Whether everything enqueued so far is done: 1 or 0. Never waits. A poisoned queue and one that records a graph answer
 * too; what is being recorded does not count.
 */
xk_status xk_queue_idle(xk_queue *queue, uint32_t *idle);

/* Copies between any two of: device memory, pinned host memory, plain host memory (retained until a wait). */
xk_status xk_queue_copy(xk_queue *queue, void *dst, const void *src, uint64_t bytes);

/*
 * Copies device memory of a card that xk_card_peer allows to memory of the queue's card. The copy is ordered in this
 * queue only, and the caller keeps the source's memory until the copy is done: xk_arena_destroy waits for the queues of
 * the source's card, which this queue is not one of.
 */
xk_status xk_queue_copy_peer(xk_queue *queue, void *dst, const void *src, uint64_t bytes);

/* Sets `bytes` bytes at dst to `value`. */
xk_status xk_queue_fill(xk_queue *queue, void *dst, uint8_t value, uint64_t bytes);

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* Marks the point reached so far in the queue. Not while recording. The caller owns *out. */
xk_status xk_event_record(xk_queue *queue, xk_event **out);

/* Waits on the host until the point is reached. */
xk_status xk_event_wait(xk_event *event);

/* Whether the point is reached: 1 or 0. */
xk_status xk_event_done(xk_event *event, uint32_t *done);

/* Makes later work of `queue` wait for the point; the event may be of another queue of the same card. */
xk_status xk_queue_wait_event(xk_queue *queue, const xk_event *event);

/* Time between two reached points of queues made with XK_QUEUE_PROFILING. */
xk_status xk_event_elapsed_ns(const xk_event *first, const xk_event *second, uint64_t *nanoseconds);

void xk_event_destroy(xk_event *event);

/* ---- modules and kernels --------------------------------------------------------------------------------------- */

typedef struct xk_module_desc {
    uint32_t struct_size;
    uint32_t kernel_count;
    const char *name;                /* zero-terminated; so are the kernel names, the hash and the path */
    const char *const *kernel_names; /* kernel_count names */
    const void *spirv;               /* one SPIR-V module with all the kernels */
    uint64_t spirv_bytes;
    const char *source; /* the same as text, for backends that take no SPIR-V; may be null otherwise */
    uint64_t source_bytes;
    const char *hash;       /* changes whenever the device code does */
    const char *cache_path; /* file for the device's own binary, or null for no cache */
} xk_module_desc;

/*
 * Builds the kernels for the card, or loads them from the cache file. A cache file that is damaged or was made for
 * another device, driver or hash is ignored and replaced; a file that cannot be written is no error. Everything in
 * desc is borrowed for the call. The caller owns *out. Threads: any; several modules build side by side.
 */
xk_status xk_module_create(xk_card *card, const xk_module_desc *desc, xk_module **out);

/* 1 when the module came from its cache file, else 0. */
xk_status xk_module_from_cache(const xk_module *module, uint32_t *from_cache);

/* A kernel of the module; borrowed, valid until the module is destroyed. Threads: any. */
xk_status xk_module_kernel(const xk_module *module, const char *name, xk_kernel **out);

/* Waits for every queue of the card, then frees the module and its kernels. */
void xk_module_destroy(xk_module *module);

/* ---- graphs ---------------------------------------------------------------------------------------------------- */

/* From here on, queue calls are recorded instead of run. */
xk_status xk_graph_begin(xk_queue *queue);

/* Ends the recording and makes it ready to launch. The caller owns *out. On failure the recording is dropped. */
xk_status xk_graph_end(xk_queue *queue, xk_graph **out);

/* Enqueues one run of the graph on a queue of the card it was recorded on. */
xk_status xk_graph_launch(xk_queue *queue, xk_graph *graph);

/* Waits for every queue of the card, then frees the graph. */
void xk_graph_destroy(xk_graph *graph);

/* ---- faults and counts, for tests ------------------------------------------------------------------------------ */

/*
 * A fault makes a device that works look like one that fails, so that a test can let each operation fail in turn.
 * There is one at a time, for the whole process. `after` is the number of the operation of that kind that fails: 0 is
 * the next one. What the text names is a fault set by a test.
 *
 *  ALLOCATION  that arena is not there: XK_ERR_DEVICE_MEMORY, or XK_ERR_HOST_MEMORY for XK_MEMORY_HOST
 *  LAUNCH      that launch of a kernel or a graph, or recording of a kernel, fails with XK_ERR_DEVICE
 *  COPY        that copy, peer copy or fill fails with XK_ERR_DEVICE
 *  LOST        from that launch on, submissions, waits and xk_queue_idle fail with XK_ERR_DEVICE_LOST, on every queue
 *              and event; waits do wait first
 *  STALL       from that launch on, xk_queue_idle and xk_event_done say 0 on every queue and event; the work goes on,
 *              and waits return when it is done
 *  PEER        from that peer copy on, peer copies succeed and write wrong bytes
 *  IDLE        that xk_queue_idle fails with XK_ERR_DEVICE, and the queue goes on
 *
 * A failing LAUNCH, COPY or LOST is not submitted, and poisons its queue as a real failure does.
 */
#define XK_FAULT_NONE 0u
#define XK_FAULT_ALLOCATION 1u
#define XK_FAULT_LAUNCH 2u
#define XK_FAULT_COPY 3u
#define XK_FAULT_LOST 4u
#define XK_FAULT_STALL 5u
#define XK_FAULT_PEER 6u
#define XK_FAULT_IDLE 7u

/* Sets the fault, or none, and starts to count. Threads: any. */
xk_status xk_fault_set(uint32_t kind, uint64_t after);

/*
 * How many operations of a kind there were since xk_fault_set, the failing one among them; LOST and STALL count
 * launches. All kinds count whichever is set, and none while XK_FAULT_NONE is. With `after` UINT64_MAX nothing fails,
 * which tells how many operations a piece of work has. Threads: any.
 */
xk_status xk_fault_count(uint32_t kind, uint64_t *n);

typedef struct xk_live {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t cards;
    uint64_t arenas;
    uint64_t arena_bytes;
    uint64_t queues;
    uint64_t events;
    uint64_t modules;
    uint64_t graphs;
} xk_live;

/* How many handles of the process are not destroyed yet. live->struct_size is read and kept. Threads: any. */
xk_status xk_live_objects(xk_live *live);

#ifdef __cplusplus
}
#endif

#endif
