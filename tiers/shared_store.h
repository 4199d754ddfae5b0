#ifndef PANDO_TIERS_SHARED_STORE_H_
#define PANDO_TIERS_SHARED_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "tiers/shared/remote_store.h"
#include "tiers/shared/shared_key.h"

namespace pando {

// A store that many machines share, and the secret that signs what they keep
// there.
struct SharedStore {
  std::unique_ptr<RemoteStore> store;
  std::unique_ptr<SharedKey> key;  // null: values are not signed
  // Names the values: what was kept under another digest is not found. It
  // depends on the key.
  uint64_t digest = 0;
};

// Opens the shared store that the option `option` names by `addresses`: one
// address, or several of the same backend. `digest` says what is kept there;
// `key_file` is the path of the secret, or empty. An error names the part of
// the option that is at fault, and repeats no password. REQUIRES: `addresses`
// is not empty.
absl::StatusOr<SharedStore> OpenSharedStore(
    const char* option, std::span<const std::string> addresses,
    const std::string& key_file, uint64_t digest);

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_STORE_H_
