#ifndef PANDO_TIERS_REDIS_REDIS_NODES_H_
#define PANDO_TIERS_REDIS_REDIS_NODES_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tiers/redis/redis_address.h"
#include "tiers/redis/redis_connection.h"

namespace pando {

// A pool of connections to servers: for each server as many as threads have
// used at once. If too many are idle, all servers together, it closes all idle
// ones. Owned by RedisClient; thread-safe.
class RedisNodes {
 public:
  explicit RedisNodes(RedisLogin login) : login_(std::move(login)) {}

  // Returns a connection that no other thread uses: an idle one, or a new one.
  absl::StatusOr<std::unique_ptr<RedisConnection>> Take(
      const RedisAddress& node, absl::Time deadline);
  // Closes the idle connections to a server. Must be called when the server, or
  // the way to it, has failed.
  void Forget(const RedisAddress& node);
  // Takes a connection back for later calls. REQUIRES: all its replies have
  // been read.
  void GiveBack(const RedisAddress& node,
                std::unique_ptr<RedisConnection> connection);

 private:
  std::unique_ptr<RedisConnection> TakeIdle(const RedisAddress& node);

  using Idle =
      std::map<RedisAddress, std::vector<std::unique_ptr<RedisConnection>>>;

  const RedisLogin login_;
  absl::Mutex mutex_;
  Idle idle_ ABSL_GUARDED_BY(mutex_);
  size_t idle_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_NODES_H_
