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

// Copies pages of a GPU, which `device` names, by its copy engines. It pins the
// transfer memory.
absl::StatusOr<std::unique_ptr<PageCopier>> MakeCudaPageCopier(
    const std::string& device, const Welcome& welcome,
    std::span<const UniqueFd> descriptors);

}  // namespace pando::mover

#endif  // PANDO_MOVER_CUDA_PAGE_COPIER_H_
