#ifndef PANDO_TIERS_REDIS_REDIS_OPTIONS_H_
#define PANDO_TIERS_REDIS_REDIS_OPTIONS_H_

#include <span>

#include "absl/status/statusor.h"
#include "tiers/redis/redis_store.h"
#include "tiers/shared/store_uri.h"

namespace pando {

// Reads the addresses of a server, or of some nodes of a cluster. The options
// of the first address hold for all. An error names the option at fault.
absl::StatusOr<RedisStore::Config> ReadRedisOptions(
    std::span<const StoreUri> uris);

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_OPTIONS_H_
