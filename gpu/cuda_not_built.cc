// Stands in for what needs the CUDA toolkit, in a build without it. Such a
// build has no shard on a device, so nothing here is called.
#include "gpu/cuda_page_checksummer.h"

namespace pando {

absl::StatusOr<std::unique_ptr<PageChecksummer>> MakeCudaPageChecksummer(
    const KvLayout&, const std::vector<cuda::Memory>&) {
  return absl::UnimplementedError("built without the CUDA toolkit");
}

}  // namespace pando
