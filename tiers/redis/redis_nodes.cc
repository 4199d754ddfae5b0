#include "tiers/redis/redis_nodes.h"

#include <cstddef>

namespace pando {
namespace {

// The most idle connections; when one more is given back, all idle ones are
// closed. A cluster of twenty nodes needs fewer. There must be a limit, because
// nodes come and go, and a server may name any number of others.
constexpr size_t kMaxIdle = 256;

}  // namespace

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisNodes::Take(
    const RedisAddress& node, absl::Time deadline) {
  // The server may have closed idle connections, or may have restarted.
  while (std::unique_ptr<RedisConnection> idle = TakeIdle(node)) {
    if (idle->IsQuiet()) return idle;
  }
  return RedisConnection::Open(node, login_, deadline);
}

std::unique_ptr<RedisConnection> RedisNodes::TakeIdle(
    const RedisAddress& node) {
  absl::MutexLock hold(&mutex_);
  const auto found = idle_.find(node);
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<RedisConnection> connection = std::move(found->second.back());
  found->second.pop_back();
  --idle_count_;
  if (found->second.empty()) idle_.erase(found);
  return connection;
}

void RedisNodes::Forget(const RedisAddress& node) {
  Idle::node_type closed;
  absl::MutexLock hold(&mutex_);
  closed = idle_.extract(node);
  if (!closed.empty()) idle_count_ -= closed.mapped().size();
}

void RedisNodes::GiveBack(const RedisAddress& node,
                          std::unique_ptr<RedisConnection> connection) {
  Idle closed;
  absl::MutexLock hold(&mutex_);
  if (idle_count_ == kMaxIdle) {
    closed.swap(idle_);
    idle_count_ = 0;
  }
  idle_[node].push_back(std::move(connection));
  ++idle_count_;
}

}  // namespace pando
