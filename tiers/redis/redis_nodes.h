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

// Connections to servers: as many to each as threads have used at once. Owned
// by RedisClient; thread-safe.
class RedisNodes {
 public:
  explicit RedisNodes(RedisLogin login) : login_(std::move(login)) {}

  // A connection that no other thread uses.
  absl::StatusOr<std::unique_ptr<RedisConnection>> Take(
      const RedisAddress& node, absl::Time deadline);
  // Closes the connections that are not in use: the server, or the way to it,
  // has failed.
  void Forget(const RedisAddress& node);
  // All its replies have been read.
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
