#include "service/tiers/redis/redis_nodes.h"

namespace pando {

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisNodes::Take(
    const RedisAddress& node, absl::Time deadline) {
  // The server may have closed those that it saw idle, or have restarted.
  while (std::unique_ptr<RedisConnection> idle = TakeIdle(node)) {
    if (idle->IsQuiet()) return idle;
  }
  return RedisConnection::Open(node, login_, deadline);
}

std::unique_ptr<RedisConnection> RedisNodes::TakeIdle(
    const RedisAddress& node) {
  absl::MutexLock hold(&mutex_);
  std::vector<std::unique_ptr<RedisConnection>>& idle = idle_[node];
  if (idle.empty()) return nullptr;
  std::unique_ptr<RedisConnection> connection = std::move(idle.back());
  idle.pop_back();
  return connection;
}

void RedisNodes::GiveBack(const RedisAddress& node,
                          std::unique_ptr<RedisConnection> connection) {
  absl::MutexLock hold(&mutex_);
  idle_[node].push_back(std::move(connection));
}

}  // namespace pando
