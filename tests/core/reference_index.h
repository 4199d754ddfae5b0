#ifndef PANDO_TESTS_CORE_REFERENCE_INDEX_H_
#define PANDO_TESTS_CORE_REFERENCE_INDEX_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/eviction/eviction_policy.h"
#include "core/requests/namespace_key.h"
#include "core/requests/requests.h"

namespace pando {

// The unit of comparison: a token, or in a bigram namespace a pair of
// neighbours.
using Unit = uint64_t;
using Units = std::vector<Unit>;
Units UnitsOf(const NamespaceKey& ns, std::span<const Token> tokens);

// A prefix of a namespace.
struct Place {
  NamespaceKey ns;
  Units prefix;

  friend bool operator==(const Place&, const Place&) = default;
};

// The facts that ReferenceReuse knows of a node.
struct ReuseOfNode {
  uint32_t at = 0;        // tick of the last use
  uint32_t uses = 1;      // 0: ReferenceReuse does not know the node
  uint32_t interval = 0;  // these are levels
  uint32_t output = 0;
  uint32_t new_tokens = 0;
  uint32_t shadow_pages = 0;  // of its front, that LRU would hold
};

// The radix tree, the naive way: a map from each cached prefix to its last
// page, searched from end to end. Eviction chooses among nodes, and a node is
// what one insert added until something ends inside it; so the last page of a
// node carries what belongs to the node.
class ReferenceIndex {
 public:
  struct Node {
    uint64_t number;  // in the order of creation, from 1
    uint64_t last_access = 0;
    uint32_t hits = 0;
    int32_t priority = 0;
    bool has_ended = false;
    absl::Time retained_until = absl::InfinitePast();
    ReuseOfNode reuse = {};
  };
  struct Page {
    PageId id;
    uint32_t locks = 0;        // locks whose prefix contains this page
    std::optional<Node> node;  // the one that ends here
  };
  using Pages = std::map<Units, Page>;

  explicit ReferenceIndex(uint32_t page_tokens) : page_tokens_(page_tokens) {}

  // Extends `start` by the units of at most `max_pages` pages, as far as they
  // are cached; returns the pages found.
  std::vector<PageId> Extend(Place& start, std::span<const Unit> units,
                             size_t max_pages) const;
  // Whether all of `place` is cached.
  bool IsCached(const Place& place) const;
  // The cached pages on the way to `place`, first page first.
  std::vector<Page*> PathTo(const Place& place);
  std::vector<const Page*> PathTo(const Place& place) const;

  // Splits the node in which `place` lies, if it does not end there.
  void EndNodeAt(const Place& place);
  // Shortens `place` to the last end of a node in it.
  void DropPartialNode(Place& place) const;
  // Adds one new node of `pages` after `place`, which it extends.
  void AddNode(Place& place, std::span<const Unit> units,
               std::span<const PageId> pages);

  // The nodes of `place` were used just now.
  void Touch(const Place& place);
  // An insert contained the nodes of `place`.
  void CountHit(const Place& place);
  void RaisePriority(const Place& place, int32_t priority);
  // The nodes that lead to `place` alone will not be used again.
  void EndPrefix(const Place& place);
  void Retain(const Place& place, absl::Time until);
  void Lock(const Place& place);
  // Nodes that become unlocked count as used just now.
  void Unlock(const Place& place);
  // The lock moves; both places were used before.
  void MoveLock(const Place& from, const Place& to);

  // Where `place` ends: the number of the node in which it does, and units.
  // None for the start.
  PrefixHandle HandleOf(const Place& place) const;
  // Nothing when the node is gone, or shorter than that.
  std::optional<Place> PlaceOf(const PrefixHandle& handle) const;

  // The ended leaf that goes first, of the namespaces that `may_evict`.
  using Filter = std::function<bool(const NamespaceKey&)>;
  std::optional<Place> NextEnded(const Filter& may_evict) const;
  // The page that `policy` evicts next, of the namespaces that `may_evict`;
  // nothing when there is none.
  std::optional<Place> NextVictim(EvictionPolicyKind policy,
                                  const Filter& may_evict) const;
  void Remove(const Place& last_page);

  // The unlocked leaves of the namespaces that `may_evict`, by their ends.
  std::vector<std::pair<Place, const Node*>> UnlockedLeaves(
      const Filter& may_evict) const;
  // All nodes.
  struct NodeRun {
    Place end;
    Node* node;
    uint32_t pages;
  };
  std::vector<NodeRun> NodeRuns();

  // Each namespace that anything was ever cached in.
  const std::vector<std::pair<NamespaceKey, Pages>>& namespaces() const {
    return namespaces_;
  }
  const Pages* Find(const NamespaceKey& ns) const;

 private:
  static bool StartsWith(const Units& units, const Units& prefix);
  Pages& PagesOf(const NamespaceKey& ns);
  // The first page from `place` on that ends a node.
  Pages::const_iterator EndOfNode(const Place& place) const;

  const uint32_t page_tokens_;
  std::vector<std::pair<NamespaceKey, Pages>> namespaces_;
  uint64_t nodes_made_ = 0;
  uint64_t now_ = 0;  // counts accesses
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_INDEX_H_
