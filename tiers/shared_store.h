#ifndef PANDO_TIERS_SHARED_STORE_H_
#define PANDO_TIERS_SHARED_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "tiers/shared/remote_store.h"

namespace pando {

// Opens the shared store that `addresses` name: one address, or several of the
// same backend. `digest` names the model and the shape of the blocks, and the
// key that signs them, if any; blocks under another digest are not found. An
// error names the part of --tier-shared that is at fault, and repeats no
// password. REQUIRES: `addresses` is not empty.
absl::StatusOr<std::unique_ptr<RemoteStore>> OpenSharedStore(
    std::span<const std::string> addresses, uint64_t digest);

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_STORE_H_
