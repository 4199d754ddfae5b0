#ifndef PANDO_BENCH_GPU_PAGE_RATES_H_
#define PANDO_BENCH_GPU_PAGE_RATES_H_

#include <cstdint>

#include "gpu/kv_layout.h"

namespace pando {

// Prints how fast `pages` pages, in random order, of a pool twice as large are
// copied and checksummed on the current device, and what the device can do at
// best with as many bytes.
void PrintPageRates(const KvShape& shape, uint32_t pages);

}  // namespace pando

#endif  // PANDO_BENCH_GPU_PAGE_RATES_H_
