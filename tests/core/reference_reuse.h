#ifndef PANDO_TESTS_CORE_REFERENCE_REUSE_H_
#define PANDO_TESTS_CORE_REFERENCE_REUSE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/journal/stats.h"
#include "core/reuse/request_facts.h"
#include "tests/core/reference_index.h"
#include "tests/core/reference_tables.h"

namespace pando {

// The knowledge of the policy reuse, worked out by definition: each tick, each
// use and each eviction goes through all nodes and ghosts of the index.
//
// A node that was there before is known from its next use on, as if it had been
// inserted then; what goes before leaves no ghost. Until all such leaves that
// could go are gone or used, the least recently used of them goes first.
class ReferenceReuse {
 public:
  // The cache has so many pages, and was used until before `first_tick`.
  ReferenceReuse(ReferenceIndex* index, uint32_t page_tokens,
                 uint32_t capacity_pages, uint32_t warmup_ticks,
                 uint32_t first_tick);

  uint32_t tick() const { return tick_; }
  RequestFacts BeginRequest(size_t prompt_tokens, size_t cached_tokens);
  // The last node of `place` is new, and `pages` long. Splits it where it was
  // used differently before.
  void AddLeaf(const Place& place, uint32_t pages, RequestFacts& facts);
  // The nodes of `place` were used, down from the first that is not locked or
  // from all of them.
  void Use(const Place& place, RequestFacts* facts);
  void UseUnlocked(const Place& place);
  // The node that ended at `place` lost its last pages but `kept`.
  void Trimmed(const Place& place, const ReferenceIndex::Node& node,
               uint32_t pages, uint32_t kept, bool is_evicted);

  // The unlocked leaf of one quota class that is evicted first, and what
  // decides between it and the victims of other classes.
  struct Victim {
    Place place;
    float index;
    uint64_t last_access;
  };
  std::optional<Victim> NextVictim(
      const ReferenceIndex::Filter& of_class) const;

  ReuseStats Stats() const;

 private:
  using Node = ReferenceIndex::Node;
  struct Ghost {
    Place first_page;  // through it
    Place end;
    uint32_t pages;
    Node node;
  };
  // A run, of a node or a ghost.
  struct Run {
    Node* node;
    uint32_t pages;
    uint64_t depth;
    bool is_ghost;
  };

  static bool IsKnown(const Node& node) { return node.reuse.uses > 0; }
  std::vector<Run> Runs();
  std::vector<Run> PathTo(const Place& place);
  void UseRuns(const std::vector<Run>& runs, RequestFacts* facts);
  void Meet(Node& node, uint32_t pages, const RequestFacts* facts);
  void CountUse(const Node& node, uint32_t pages, bool is_ghost);
  void SetClass(Node& node, uint32_t pages, const RequestFacts& facts);
  void ToShadow(Node& node, uint32_t pages);
  void DropGhost(std::optional<Ghost>& ghost);
  double DebtLimit() const;
  bool MustFollowLru() const;
  uint64_t Debt() const;
  uint32_t BinOf(const Node& node) const;

  ReferenceIndex* const index_;
  const uint32_t page_tokens_;
  const uint32_t capacity_;
  const uint32_t warmup_ticks_;
  const uint32_t first_tick_;
  uint32_t tick_;
  ReferenceTables tables_;
  std::deque<std::optional<Ghost>> ghosts_;  // the first evicted first
  uint64_t requested_ = 0;
  uint64_t lru_hits_ = 0;
  uint64_t hits_ = 0;
  uint64_t ghost_hits_ = 0;
  uint64_t new_pages_ = 0;
  int64_t gain_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_REUSE_H_
