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

// The knowledge that the policy reuse needs, worked out by definition. Each
// tick, each use and each eviction goes through all nodes and ghosts of the
// index.
//
// A node that exists before the start becomes known when it is next used, as if
// it were inserted then. A node evicted before that leaves no ghost. While any
// unlocked leaf of a class is unknown, the least recently used leaf of that
// class is evicted first.
class ReferenceReuse {
 public:
  // The cache has `capacity_pages` pages and was in use before `first_tick`.
  ReferenceReuse(ReferenceIndex* index, uint32_t page_tokens,
                 uint32_t capacity_pages, uint32_t warmup_ticks,
                 uint32_t first_tick);

  uint32_t tick() const { return tick_; }
  RequestFacts BeginRequest(size_t prompt_tokens, size_t cached_tokens);
  // Records that the last node of `place` is new and `pages` long. Splits the
  // node at each point where the use of its ghosts differed.
  void AddLeaf(const Place& place, uint32_t pages, RequestFacts& facts);
  // Use records a use of all nodes of `place`. UseUnlocked records a use of
  // those nodes only that are not locked.
  void Use(const Place& place, RequestFacts* facts);
  void UseUnlocked(const Place& place);
  // Whether LRU would evict the node that ends at `place` first, among the
  // known unlocked nodes of its quota class.
  bool IsInTurn(const Place& place,
                const ReferenceIndex::Filter& of_class) const;
  // Records that the node of `pages` pages that ended at `place` lost all but
  // its first `kept` pages, by eviction or by a flush.
  void Evicted(const Place& place, const ReferenceIndex::Node& node,
               uint32_t pages, uint32_t kept, bool is_in_turn);
  void Flushed(const Place& place, const ReferenceIndex::Node& node,
               uint32_t pages, uint32_t kept);

  // The unlocked leaf of one quota class that is evicted first, and the values
  // that rank it against the victims of other classes. `index` is 0 where only
  // LRU is followed, and infinite where LRU's victim would cost a debt that is
  // not covered.
  struct Victim {
    Place place;
    float index;
    uint64_t last_access;
    bool is_in_shadow;
  };
  std::optional<Victim> NextVictim(
      const ReferenceIndex::Filter& of_class) const;

  ReuseStats Stats() const;

 private:
  using Node = ReferenceIndex::Node;
  struct Ghost {
    Place end;
    uint32_t pages;  // 0 once it is gone
    uint32_t room;   // first size, counted until all older ghosts are gone
    Node node;
  };
  // A run of a node or of a ghost.
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
  void KeepInShadow(const Place& place, uint32_t pages, uint32_t kept);
  Place Shortened(const Place& place, uint32_t pages) const;
  Ghost* GhostFrom(const Place& first_page);
  void DropGhost(Ghost& ghost);
  void ForgetGhost(Ghost& ghost);
  void MakeRoomForGhost(uint32_t pages);
  double DebtLimit() const;
  bool MayOwe() const;
  uint64_t Debt() const;
  uint32_t BinOf(const Node& node) const;

  ReferenceIndex* const index_;
  const uint32_t page_tokens_;
  const uint32_t capacity_;
  const uint32_t warmup_ticks_;
  const uint32_t first_tick_;
  uint32_t tick_;
  ReferenceTables tables_;
  std::deque<Ghost> ghosts_;  // in order of eviction
  uint64_t requested_ = 0;
  uint64_t lru_hits_ = 0;
  uint64_t hits_ = 0;
  uint64_t ghost_hits_ = 0;
  uint64_t new_pages_ = 0;
  int64_t gain_ = 0;
  // The part of the debt that LRU would evict, too, as soon as the room made
  // since the last request is filled.
  uint64_t in_turn_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_REUSE_H_
