#include "tiers/shared_store.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "os/logging/log.h"
#include "tiers/redis/redis_options.h"
#include "tiers/redis/redis_store.h"
#include "tiers/shared/folder_store.h"
#include "tiers/shared/store_uri.h"

namespace pando {
namespace {

using Opened = absl::StatusOr<std::unique_ptr<RemoteStore>>;

Opened OpenFolder(std::span<const StoreUri> uris, uint64_t digest) {
  const std::string& folder = uris.front().place;
  if (uris.size() > 1 || !uris.front().options.empty() ||
      !folder.starts_with('/')) {
    return absl::InvalidArgumentError(
        "tier-shared has an address file:// that is not file:///FOLDER alone");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FolderStore> store,
                   FolderStore::Open("tier-shared", folder, digest));
  Log(LogLevel::kInfo, "shared folder opened", {{"folder", folder}});
  return store;
}

Opened OpenRedis(std::span<const StoreUri> uris, uint64_t digest) {
  ASSIGN_OR_RETURN(RedisStore::Config config, ReadRedisOptions(uris));
  return RedisStore::Open(std::move(config), digest);
}

struct Backend {
  absl::string_view scheme;
  Opened (*open)(std::span<const StoreUri> uris, uint64_t digest);
};

constexpr Backend kBackends[] = {
    {"file", OpenFolder},
    {"redis", OpenRedis},
    {"rediss", OpenRedis},
    {"unix", OpenRedis},
};

absl::StatusOr<Backend> BackendOf(const StoreUri& uri) {
  const auto* const known =
      std::ranges::find(kBackends, uri.scheme, &Backend::scheme);
  if (known != std::end(kBackends)) return *known;
  return absl::InvalidArgumentError(absl::StrCat(
      "tier-shared has an address of an unknown kind; must begin with ",
      absl::StrJoin(kBackends, ", ",
                    [](std::string* schemes, const Backend& backend) {
                      absl::StrAppend(schemes, backend.scheme, "://");
                    })));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteStore>> OpenSharedStore(
    std::span<const std::string> addresses, uint64_t digest) {
  std::vector<StoreUri> uris;
  for (const std::string& address : addresses) {
    ASSIGN_OR_RETURN(uris.emplace_back(), StoreUri::Parse(address));
  }
  ASSIGN_OR_RETURN(const Backend backend, BackendOf(uris.front()));
  for (const StoreUri& uri : uris) {
    ASSIGN_OR_RETURN(const Backend other, BackendOf(uri));
    if (other.open == backend.open) continue;
    return absl::InvalidArgumentError(
        "tier-shared has addresses of several stores; pages are shared in one "
        "of them");
  }
  return backend.open(uris, digest);
}

}  // namespace pando
