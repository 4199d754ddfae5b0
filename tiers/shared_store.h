#ifndef PANDO_TIERS_SHARED_STORE_H_
#define PANDO_TIERS_SHARED_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "tiers/shared/remote_store.h"

namespace pando {

// Opens the store that addresses name, one or several of one backend. `digest`:
// blocks of another one are of another model or shape. An error names the part
// of tier-shared that is at fault, and repeats no password. REQUIRES: there is
// an address.
absl::StatusOr<std::unique_ptr<RemoteStore>> OpenSharedStore(
    std::span<const std::string> addresses, uint64_t digest);

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_STORE_H_
