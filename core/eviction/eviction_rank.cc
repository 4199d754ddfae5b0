#include "core/eviction/eviction_rank.h"

namespace pando {
namespace {

// From so many inserts on, slru protects a node.
constexpr uint32_t kProtectedHits = 2;

}  // namespace

EvictionRank EvictionRankOf(EvictionPolicyKind kind, const Node& node) {
  const auto last_access = static_cast<int64_t>(node.last_access);
  const auto created = static_cast<int64_t>(node.id);
  switch (kind) {
    case EvictionPolicyKind::kLru:
      return {last_access, 0, node.id};
    case EvictionPolicyKind::kLfu:
      return {node.hit_count, node.last_access, node.id};
    case EvictionPolicyKind::kFifo:
      return {created, 0, node.id};
    case EvictionPolicyKind::kMru:
      return {-last_access, 0, node.id};
    case EvictionPolicyKind::kFilo:
      return {-created, 0, node.id};
    case EvictionPolicyKind::kPriority:
      return {node.priority, node.last_access, node.id};
    case EvictionPolicyKind::kReuse:
      break;  // ReusePolicy computes its rank itself
    case EvictionPolicyKind::kSlru:
      return {node.hit_count >= kProtectedHits, node.last_access, node.id};
  }
  return {};
}

}  // namespace pando
