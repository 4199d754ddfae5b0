#include "core/parts/cache_parts.h"

#include "core/requests/errors.h"

namespace pando {

absl::Status CacheParts::CheckAdmits() const {
  if (!is_draining) return absl::OkStatus();
  return MakeError(Reason::kDraining,
                   "the server is shutting down and admits nothing new");
}

}  // namespace pando
