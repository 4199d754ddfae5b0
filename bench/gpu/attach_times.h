#ifndef PANDO_BENCH_GPU_ATTACH_TIMES_H_
#define PANDO_BENCH_GPU_ATTACH_TIMES_H_

#include <cstdint>

namespace pando {

// Prints what it takes to make a pool of that size on the first GPU, to export
// it, and to import and map it.
void PrintAttachTimes(uint64_t pool_bytes);

}  // namespace pando

#endif  // PANDO_BENCH_GPU_ATTACH_TIMES_H_
