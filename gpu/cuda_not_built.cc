// In place of what needs the CUDA toolkit. No shard gets here without it.
#include "gpu/cuda_page_checksummer.h"

namespace pando {

absl::StatusOr<std::unique_ptr<PageChecksummer>> MakeCudaPageChecksummer(
    const KvLayout&, const std::vector<cuda::Memory>&) {
  return absl::UnimplementedError("built without the CUDA toolkit");
}

}  // namespace pando
