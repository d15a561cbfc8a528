// op family : select, the sparse selection of attention (N5 "Sparse selection" of docs/numerics.md)
// shapes    : score f32 [T][max_blocks], not negative; selected i32 [T][budget]
#include "../common/math.hpp"

ex::work_group_static<int[512]> select_counts;

// The budget best blocks of a token in ascending order, ties to the lowest block. Scores are not negative, so their
// bits order as integers: a binary search finds the last score that is in. One group a token, an item a contiguous run
// of blocks.
XK_KERNEL void index_select(const float *score, const int *start, int *selected, int ratio, int budget,
                            int max_blocks) {
    auto it = xk_item();
    const int t = (int)it.get_group(0), lid = (int)it.get_local_id(0), items = (int)it.get_local_range(0);
    const int nb = (*start + t + 1) / ratio;
    if (nb <= budget)
        return;
    int *counts = (int *)&select_counts;
    const uint32_t *bits = (const uint32_t *)(score + (size_t)t * max_blocks);
    const int run = (nb + items - 1) / items, b0 = lid * run < nb ? lid * run : nb, b1 = b0 + run < nb ? b0 + run : nb;
    uint32_t low = 0, high = 0x7F800001u; // at least `budget` scores are >= low, fewer are >= high
    while (high - low > 1) {
        const uint32_t mid = low + (high - low) / 2;
        int c = 0;
        for (int b = b0; b < b1; b++)
            c += bits[b] >= mid ? 1 : 0;
        counts[lid] = c;
        sycl::group_barrier(it.get_group());
        int total = 0;
        for (int i = 0; i < items; i++)
            total += counts[i];
        sycl::group_barrier(it.get_group());
        if (total >= budget)
            low = mid;
        else
            high = mid;
    }
    int above = 0, equal = 0;
    for (int b = b0; b < b1; b++) {
        above += bits[b] > low ? 1 : 0;
        equal += bits[b] == low ? 1 : 0;
    }
    counts[lid] = above;
    counts[256 + lid] = equal;
    sycl::group_barrier(it.get_group());
    int all_above = 0, above_before = 0, equal_before = 0;
    for (int i = 0; i < items; i++) {
        all_above += counts[i];
        if (i < lid) {
            above_before += counts[i];
            equal_before += counts[256 + i];
        }
    }
    const int equal_in = budget > all_above ? budget - all_above : 0;
    int at = above_before + (equal_before < equal_in ? equal_before : equal_in), equal_seen = equal_before;
    for (int b = b0; b < b1; b++) {
        bool in = bits[b] > low;
        if (bits[b] == low)
            in = equal_seen++ < equal_in;
        if (in && at < budget)
            selected[(size_t)t * budget + at++] = b; // NaN scores could ask for more
    }
}
