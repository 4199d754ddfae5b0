#ifndef PANDO_CORE_EVICTION_EVICTION_POLICY_H_
#define PANDO_CORE_EVICTION_EVICTION_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/nodes/node.h"

namespace pando {

// Tells which leaf is evicted first. If two are equal, it is the older node:
// the one with the smaller id.
enum class EvictionPolicyKind {
  kLru,       // the least recently used
  kLfu,       // the least often inserted, then the least recently used
  kFifo,      // the oldest
  kMru,       // the most recently used
  kFilo,      // the youngest
  kPriority,  // the lowest priority, then the least recently used
  kSlru,      // what was inserted once, then the least recently used
  kReuse,     // what is least likely to be used again soon, see ReuseLearner
};
inline constexpr size_t kEvictionPolicies = 8;

// "lru" and so on.
std::string_view EvictionPolicyName(EvictionPolicyKind kind);
// Takes upper case, too; an error lists the names.
absl::StatusOr<EvictionPolicyKind> ParseEvictionPolicy(std::string_view name);

struct EvictionRank;

// The order in which unlocked leaves are evicted. RadixTree owns one for each
// quota class and tells it of every change of a node, so that it is up to date
// at all times. Not thread-safe.
//
// One that is to take the place of another is filled in steps while the tree is
// in use. Until then it is told of all changes, also of nodes that it does not
// have yet.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // `node` is unlocked from now on, and was just used.
  virtual void Add(Node& node) = 0;
  // `node` is about to be locked or deleted.
  virtual void Remove(Node& node) = 0;
  // `front`, whose only child is `back`, was split off it. Both are unlocked.
  virtual void AddFront(Node& front, Node& back) = 0;
  // `node`, which is unlocked, got its first child or lost its last.
  virtual void LeafChanged(Node& node) = 0;
  // An access changes what the order compares in `node` and its ancestors.
  // BeforeUse is called before that change, AfterUse after it.
  virtual void BeforeUse(Node& node) = 0;
  virtual void AfterUse(Node& node) = 0;

  // While it is filled: `node`, which is unlocked, was there before. Is called
  // once for each such node; Fill comes after all of them.
  virtual void AddEarlier(Node& node) { Add(node); }
  // Puts up to `nodes` of these where they belong. Returns whether all are
  // there.
  virtual bool Fill(uint32_t /*nodes*/) { return true; }
  // It is not in use any more: forgets up to `nodes` nodes. Returns whether the
  // rest is gone at once when the order is deleted.
  virtual bool Shrink(uint32_t /*nodes*/) { return true; }

  // The unlocked leaf that goes first; null when everything is locked.
  virtual Node* Victim() = 0;
  // How Victim() compares with those of other orders of the kind.
  virtual EvictionRank RankOf(const Node& victim) const = 0;

  // Adds a sentence when `node`, which is unlocked, is not where it belongs in
  // the order.
  virtual void AppendViolations(const Node& node,
                                std::vector<std::string>& violations) const = 0;
  // The leaves in the order; none when it does not count them.
  virtual std::optional<size_t> leaf_count() const = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_EVICTION_POLICY_H_
