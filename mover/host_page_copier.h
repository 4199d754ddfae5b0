#ifndef PANDO_MOVER_HOST_PAGE_COPIER_H_
#define PANDO_MOVER_HOST_PAGE_COPIER_H_

#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "mover/messages.h"
#include "mover/page_copier.h"

namespace pando::mover {

// The name of the device of shards in host memory.
inline constexpr std::string_view kHostDevice = "host";

// Makes a copier for a pool in host memory. `descriptors` are those of the
// welcome.
absl::StatusOr<std::unique_ptr<PageCopier>> MakeHostPageCopier(
    const Welcome& welcome, std::span<const UniqueFd> descriptors);

}  // namespace pando::mover

#endif  // PANDO_MOVER_HOST_PAGE_COPIER_H_
