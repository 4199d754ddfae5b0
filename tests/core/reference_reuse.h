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
  // Whether the node that ends at `place` is what LRU would evict first of the
  // known nodes of its quota class.
  bool IsInTurn(const Place& place,
                const ReferenceIndex::Filter& of_class) const;
  // The node of `pages` that ended at `place` lost its last pages but `kept`,
  // to others or by a flush.
  void Evicted(const Place& place, const ReferenceIndex::Node& node,
               uint32_t pages, uint32_t kept, bool is_in_turn);
  void Flushed(const Place& place, const ReferenceIndex::Node& node,
               uint32_t pages, uint32_t kept);

  // The unlocked leaf of one quota class that is evicted first, and what
  // decides between it and the victims of other classes: its index, less than
  // any where LRU alone is followed, more than any where it is not paid for.
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
    uint32_t pages;  // 0: it is gone, and takes room until those before it are
    uint32_t room;   // its pages at first
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
  std::deque<Ghost> ghosts_;  // the first evicted first
  uint64_t requested_ = 0;
  uint64_t lru_hits_ = 0;
  uint64_t hits_ = 0;
  uint64_t ghost_hits_ = 0;
  uint64_t new_pages_ = 0;
  int64_t gain_ = 0;
  // The part of the debt that LRU would evict, too, as soon as the room is
  // filled that was made since the last request.
  uint64_t in_turn_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_REUSE_H_
