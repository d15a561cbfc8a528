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
static inline sycl::nd_item<1> xk_item() { return sycl::ext::oneapi::this_work_item::get_nd_item<1>(); }

// Teams of 16 lanes, the unit of every sum (docs/numerics.md N2). Where a sub-group is a team, its own ids are used:
// the CPU compiler then sees which values are uniform and makes contiguous loads.
static inline int xk_team(sycl::nd_item<1> item) {
#ifdef XK_SG32
    return static_cast<int>(item.get_local_id(0) >> 4);
#else
    return static_cast<int>(item.get_sub_group().get_group_linear_id());
#endif
}
static inline int xk_lane(sycl::nd_item<1> item) {
#ifdef XK_SG32
    return static_cast<int>(item.get_local_id(0) & 15);
#else
    return static_cast<int>(item.get_sub_group().get_local_linear_id());
#endif
}

// A team as a group, for shuffles and barriers within it. Two teams of one sub-group may part ways (one returns, or
// takes more rounds), so that there each is a group of its own. Take it at the top of a kernel, before they do.
#ifdef XK_SG32
using xk_group = ex::chunk<16, sycl::sub_group>;
static inline xk_group xk_team_group(sycl::nd_item<1> item) { return ex::chunked_partition<16>(item.get_sub_group()); }
#else
using xk_group = sycl::sub_group;
static inline xk_group xk_team_group(sycl::nd_item<1> item) { return item.get_sub_group(); }
#endif
