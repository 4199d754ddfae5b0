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

// Which leaf is evicted first. If two are equal, the older node goes first: the
// one with the smaller id.
enum class EvictionPolicyKind {
  kLru,       // the least recently used
  kLfu,       // the least often inserted, then the least recently used
  kFifo,      // the oldest
  kMru,       // the most recently used
  kFilo,      // the youngest
  kPriority,  // the lowest priority, then the least recently used
  kSlru,   // leaves that were inserted only once, then the least recently used
  kReuse,  // the least likely to be used again soon, see ReuseLearner
};
inline constexpr size_t kEvictionPolicies = 8;

// The name as users write it, such as "lru".
std::string_view EvictionPolicyName(EvictionPolicyKind kind);
// Accepts upper case, too. INVALID_ARGUMENT, with a list of the names, for any
// other text.
absl::StatusOr<EvictionPolicyKind> ParseEvictionPolicy(std::string_view name);

struct EvictionRank;

// The order in which unlocked leaves are evicted. RadixTree owns one for each
// quota class and tells it of every change of a node, so it is always up to
// date. Not thread-safe.
//
// An order that will take the place of another one is filled in steps while the
// tree is in use: by AddEarlier for each node that was there before, then by
// Fill. Meanwhile it is also told of changes of nodes that it does not have
// yet.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // `node` has become unlocked, and was just used.
  virtual void Add(Node& node) = 0;
  // `node` is about to be locked or deleted.
  virtual void Remove(Node& node) = 0;
  // `front`, whose only child is `back`, was split off it. Both are unlocked.
  virtual void AddFront(Node& front, Node& back) = 0;
  // `node`, which is unlocked, got its first child or lost its last one.
  virtual void LeafChanged(Node& node) = 0;
  // An access changes, in `node` and its ancestors, what the order compares.
  // BeforeUse is called before that change, AfterUse after it.
  virtual void BeforeUse(Node& node) = 0;
  virtual void AfterUse(Node& node) = 0;

  // While the order is filled: takes note of an unlocked node that was there
  // before. The tree calls this once for each such node, and then Fill.
  virtual void AddEarlier(Node& node) { Add(node); }
  // Puts up to `nodes` of the nodes from AddEarlier into their places. Returns
  // whether all are in place.
  virtual bool Fill(uint32_t /*nodes*/) { return true; }
  // Takes down an order that is not used any more: forgets up to `nodes` nodes.
  // Returns whether so few are left that the order may be deleted at once.
  virtual bool Shrink(uint32_t /*nodes*/) { return true; }

  // The unlocked leaf that is evicted first; null if everything is locked.
  virtual Node* Victim() = 0;
  // The rank of a victim, to compare it with the victims of other orders of the
  // same policy.
  virtual EvictionRank RankOf(const Node& victim) const = 0;

  // Adds a sentence if `node`, which is unlocked, is in a wrong place of the
  // order.
  virtual void AppendViolations(const Node& node,
                                std::vector<std::string>& violations) const = 0;
  // The number of leaves in the order; none if it does not count them.
  virtual std::optional<size_t> leaf_count() const = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_EVICTION_POLICY_H_
