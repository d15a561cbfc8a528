// What every kernel file starts with. Device code only.
#pragma once

#include <sycl/sycl.hpp>

namespace ex = sycl::ext::oneapi::experimental;

// Lanes of a sub-group: 16, or 32 where the device has no other width.
#ifdef XK_SG32
#define XK_LANES 32
#else
#define XK_LANES 16
#endif

// Put before `void name(...)`: a kernel over a one-dimensional range, found by its plain name.
#define XK_KERNEL                                                                                                      \
    extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((ex::nd_range_kernel<1>))                                             \
        SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((ex::sub_group_size<XK_LANES>))

// The running work-item.
static inline sycl::nd_item<1> xk_item() {
    return sycl::ext::oneapi::this_work_item::get_nd_item<1>();
}
