// op family : selftest
// maths     : x = a[i], y = b[i]; six outputs of n elements each:
//             0 fma(x, y, x)      1 x * y + x, two roundings      2 x / y
//             3 x through half    4 sum of x over 16 neighbours   5 sum of y over the group of 64
// shapes    : a, b [n], out [6, n]; n % 64 == 0
// numeric   : output 4 adds by xor distances 8, 4, 2, 1; output 5 adds in index order
// launch    : one work-item an element, groups of 64
//
// kernel add_wide: out[i] = a[i] + b[i], with a 64-bit n; the tests pass it where canary is wanted, to see a launch
// fail
#include "../common/kernel.hpp"

static ex::work_group_static<float[64]> group_values;

XK_KERNEL void canary(const float *a, const float *b, float *out, uint32_t n) {
    auto item = xk_item();
    auto lanes = item.get_sub_group();
    const size_t i = item.get_global_id(0);
    const float x = a[i];
    const float y = b[i];

    out[i] = sycl::fma(x, y, x);
    out[n + i] = x * y + x;
    out[2 * size_t(n) + i] = x / y;
    out[3 * size_t(n) + i] = static_cast<float>(static_cast<sycl::half>(x));

    float team = x;
    for (int distance = 8; distance > 0; distance /= 2) {
        team += sycl::permute_group_by_xor(lanes, team, distance);
    }
    out[4 * size_t(n) + i] = team;

    auto &shared = group_values;
    shared[item.get_local_id(0)] = y;
    sycl::group_barrier(item.get_group());
    float sum = 0.0f;
    for (int k = 0; k < 64; ++k) {
        sum += shared[k];
    }
    out[5 * size_t(n) + i] = sum;
}

XK_KERNEL void add_wide(const float *a, const float *b, float *out, uint64_t n) {
    const size_t i = xk_item().get_global_id(0);
    if (i < n) {
        out[i] = a[i] + b[i];
    }
}
