#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_COPIES_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_COPIES_H_

#include <cstddef>

#include "tests/support/cuda_stand_in/driver_api.h"

namespace cuda_stand_in {

// CUmemcpyAttributes, which toolkits before 12.8 do not declare.
struct CopyAttributes {
  int source_access_order;
  int source_hint[2];
  int target_hint[2];
  unsigned flags;
};

// cuMemcpyBatchAsync as in CUDA 12.8. The function of this name in CUDA 13 does
// not say which copy it refuses.
CUresult MemcpyBatchAsync(CUdeviceptr* targets, CUdeviceptr* sources,
                          size_t* sizes, size_t count,
                          CopyAttributes* attributes,
                          size_t* first_with_attributes,
                          size_t attributes_count, size_t* refused,
                          CUstream stream);

}  // namespace cuda_stand_in

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_COPIES_H_
