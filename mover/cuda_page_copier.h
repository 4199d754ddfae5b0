#ifndef PANDO_MOVER_CUDA_PAGE_COPIER_H_
#define PANDO_MOVER_CUDA_PAGE_COPIER_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "mover/messages.h"
#include "mover/page_copier.h"

namespace pando::mover {

// Makes a copier for the GPU that `device` names ("cuda:" and its UUID). The
// copy engines of the GPU copy the pages. Pins the transfer memory.
// `descriptors` are those of the welcome.
absl::StatusOr<std::unique_ptr<PageCopier>> MakeCudaPageCopier(
    const std::string& device, const Welcome& welcome,
    std::span<const UniqueFd> descriptors);

}  // namespace pando::mover

#endif  // PANDO_MOVER_CUDA_PAGE_COPIER_H_
