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
// neighbouring tokens.
using Unit = uint64_t;
using Units = std::vector<Unit>;
Units UnitsOf(const NamespaceKey& ns, std::span<const Token> tokens);

// A prefix in a namespace.
struct Place {
  NamespaceKey ns;
  Units prefix;

  friend bool operator==(const Place&, const Place&) = default;
};

// The facts about a node that ReferenceReuse keeps.
struct ReuseOfNode {
  uint32_t at = 0;        // tick of the last use
  uint32_t uses = 1;      // 0 if ReferenceReuse does not know the node
  uint32_t interval = 0;  // a level, as are output and new_tokens
  uint32_t output = 0;
  uint32_t new_tokens = 0;
  uint32_t shadow_pages = 0;  // pages of its front that LRU would hold
};

// A naive radix tree: a map from each cached prefix to the prefix's last page,
// searched from end to end. Eviction chooses among nodes. A node is what one
// insert added, until another node ends inside it. The last page of a node
// therefore carries the node's data.
class ReferenceIndex {
 public:
  struct Node {
    uint64_t number;  // creation order, counted from 1
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
    std::optional<Node> node;  // the node that ends here
  };
  using Pages = std::map<Units, Page>;

  explicit ReferenceIndex(uint32_t page_tokens) : page_tokens_(page_tokens) {}

  // Extends `start` by the units of at most `max_pages` pages, as far as those
  // pages are cached. Returns the pages found.
  std::vector<PageId> Extend(Place& start, std::span<const Unit> units,
                             size_t max_pages) const;
  // Whether all of `place` is cached.
  bool IsCached(const Place& place) const;
  // Returns the cached pages on the way to `place`, the first page first.
  std::vector<Page*> PathTo(const Place& place);
  std::vector<const Page*> PathTo(const Place& place) const;

  // Splits the node that contains the end of `place`, unless the node ends
  // there.
  void EndNodeAt(const Place& place);
  // Shortens `place` to the last end of a node in `place`.
  void DropPartialNode(Place& place) const;
  // Adds one new node of `pages` after `place`, and extends `place` by it.
  void AddNode(Place& place, std::span<const Unit> units,
               std::span<const PageId> pages);

  // Marks the nodes of `place` as used now.
  void Touch(const Place& place);
  // Counts an insert that contained the nodes of `place`.
  void CountHit(const Place& place);
  void RaisePriority(const Place& place, int32_t priority);
  // Marks the nodes that lead only to `place` as not to be used again.
  void EndPrefix(const Place& place);
  void Retain(const Place& place, absl::Time until);
  void Lock(const Place& place);
  // Releases one lock. Nodes that become unlocked count as used now.
  void Unlock(const Place& place);
  // Moves a lock. Both places were used before.
  void MoveLock(const Place& from, const Place& to);

  // Returns a handle with the number of the node in which `place` ends and the
  // length in units. Returns an empty handle for the start.
  PrefixHandle HandleOf(const Place& place) const;
  // Returns the place of a handle, or nothing if the node is gone or is now
  // shorter than the handle's length.
  std::optional<Place> PlaceOf(const PrefixHandle& handle) const;

  // Returns the ended leaf that is evicted first among the namespaces that
  // `may_evict` accepts.
  using Filter = std::function<bool(const NamespaceKey&)>;
  std::optional<Place> NextEnded(const Filter& may_evict) const;
  // Returns the page that `policy` evicts next among the namespaces that
  // `may_evict` accepts, or nothing if there is none.
  std::optional<Place> NextVictim(EvictionPolicyKind policy,
                                  const Filter& may_evict) const;
  void Remove(const Place& last_page);

  // Returns the unlocked leaves of the namespaces that `may_evict` accepts,
  // with their ends.
  std::vector<std::pair<Place, const Node*>> UnlockedLeaves(
      const Filter& may_evict) const;
  // A node with its end and its length.
  struct NodeRun {
    Place end;
    Node* node;
    uint32_t pages;
  };
  std::vector<NodeRun> NodeRuns();

  // All namespaces in which anything was ever cached.
  const std::vector<std::pair<NamespaceKey, Pages>>& namespaces() const {
    return namespaces_;
  }
  const Pages* Find(const NamespaceKey& ns) const;

 private:
  static bool StartsWith(const Units& units, const Units& prefix);
  Pages& PagesOf(const NamespaceKey& ns);
  // Returns the first page at or after `place` that ends a node.
  Pages::const_iterator EndOfNode(const Place& place) const;

  const uint32_t page_tokens_;
  std::vector<std::pair<NamespaceKey, Pages>> namespaces_;
  uint64_t nodes_made_ = 0;
  uint64_t now_ = 0;  // counts accesses
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_INDEX_H_
