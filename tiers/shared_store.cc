#include "tiers/shared_store.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "os/logging/log.h"
#include "tiers/redis/redis_options.h"
#include "tiers/redis/redis_store.h"
#include "tiers/shared/folder_store.h"
#include "tiers/shared/store_uri.h"

namespace pando {
namespace {

using Opened = absl::StatusOr<std::unique_ptr<RemoteStore>>;
using Uris = std::span<const StoreUri>;

// Returns an error about an option, whose message says what the option has.
absl::Status Has(const char* option, const absl::Status& what) {
  return {what.code(), absl::StrCat(option, " has ", what.message())};
}

absl::Status Has(const char* option, absl::string_view what) {
  return Has(option, absl::InvalidArgumentError(what));
}

Opened OpenFolder(const char* option, Uris uris, uint64_t digest) {
  const std::string& folder = uris.front().place;
  if (uris.size() > 1 || !uris.front().options.empty() ||
      !folder.starts_with('/')) {
    return Has(option, "an address file:// that is not file:///FOLDER alone");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FolderStore> store,
                   FolderStore::Open(option, folder, digest));
  Log(LogLevel::kInfo, "shared folder opened",
      {{"option", option}, {"folder", folder}});
  return store;
}

Opened OpenRedis(const char* option, Uris uris, uint64_t digest) {
  absl::StatusOr<RedisStore::Config> config = ReadRedisOptions(uris);
  if (!config.ok()) return Has(option, config.status());
  Opened store = RedisStore::Open(*std::move(config), digest);
  if (!store.ok()) return Has(option, store.status());
  return store;
}

struct Backend {
  absl::string_view scheme;
  Opened (*open)(const char* option, Uris uris, uint64_t digest);
};

constexpr Backend kBackends[] = {
    {"file", OpenFolder},
    {"redis", OpenRedis},
    {"rediss", OpenRedis},
    {"unix", OpenRedis},
};

absl::StatusOr<Backend> BackendOf(const char* option, const StoreUri& uri) {
  const auto* const known =
      std::ranges::find(kBackends, uri.scheme, &Backend::scheme);
  if (known != std::end(kBackends)) return *known;
  return Has(option,
             absl::StrCat("an address of an unknown kind; must begin with ",
                          absl::StrJoin(
                              kBackends, ", ",
                              [](std::string* schemes, const Backend& backend) {
                                absl::StrAppend(schemes, backend.scheme, "://");
                              })));
}

Opened OpenStore(const char* option, std::span<const std::string> addresses,
                 uint64_t digest) {
  std::vector<StoreUri> uris;
  for (const std::string& address : addresses) {
    absl::StatusOr<StoreUri> uri = StoreUri::Parse(address);
    if (!uri.ok()) return Has(option, uri.status());
    uris.push_back(*std::move(uri));
  }
  ASSIGN_OR_RETURN(const Backend backend, BackendOf(option, uris.front()));
  for (const StoreUri& uri : uris) {
    ASSIGN_OR_RETURN(const Backend other, BackendOf(option, uri));
    if (other.open == backend.open) continue;
    return Has(option, "addresses of several stores; it shares in one of them");
  }
  return backend.open(option, uris, digest);
}

}  // namespace

absl::StatusOr<SharedStore> OpenSharedStore(
    const char* option, std::span<const std::string> addresses,
    const std::string& key_file, uint64_t digest) {
  SharedStore shared = {.store = nullptr, .key = nullptr, .digest = digest};
  if (!key_file.empty()) {
    ASSIGN_OR_RETURN(shared.key, SharedKey::Read(key_file));
    shared.digest = shared.key->DigestOf(digest);
  }
  ASSIGN_OR_RETURN(shared.store, OpenStore(option, addresses, shared.digest));
  return shared;
}

}  // namespace pando
