#ifndef PANDO_CORE_NODES_SEGMENT_H_
#define PANDO_CORE_NODES_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/ids.h"
#include "core/nodes/segment_arena.h"

namespace pando {

// A short hash of a page and of all pages before it, see
// core/reuse/prefix_hash.h. It is 0 while it is not known.
using PagePrint = uint32_t;

// The facts of a segment in the tree that the ledger has, beside its tokens and
// page ids (see PageLedger). Plain data.
struct SegmentFacts {
  // The check of the fields up to depth_pages; 0: the segment is in no tree.
  uint32_t check = 0;
  uint32_t token_count = 0;
  uint32_t page_count = 0;
  uint32_t namespace_cell = 0;
  // The page before the first one, and how many pages there are before it in
  // its prefix; page 0 if there is none.
  PageId before;
  uint32_t depth_pages = 0;
  // How many pages the slices still contain; the others were evicted. 0 only
  // for a segment without pages, which is a prompt (HeldPrompt).
  uint32_t used_pages = 0;
  // How many of those are in locked nodes. Between two calls they are the first
  // ones.
  uint32_t locked_pages = 0;
  // These are as in Node, of the node whose use was the last to end in this
  // segment.
  uint32_t hit_count = 0;
  int32_t priority = 0;
  uint64_t last_access = 0;

  // Where the segment is in the tree.
  struct Place {
    uint32_t namespace_cell;
    PageId before;
    uint32_t depth_pages;
  };
};

// A run of whole pages: the tokens that spell them and their page ids, in one
// allocation. Nodes hold slices of a segment, so that splitting a node copies
// nothing. SegmentRef makes a segment, and frees it with its last reference.
// Tokens and page ids never change, so any thread with a reference may read
// them. The prints and the other facts belong to the cache and need its mutex.
class Segment {
 public:
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  uint32_t page_count() const { return facts_.page_count; }
  uint32_t used_pages() const { return facts_.used_pages; }
  const Token* tokens() const {
    return reinterpret_cast<const Token*>(this + 1);
  }
  uint32_t token_count() const { return facts_.token_count; }
  const PageId* pages() const {
    return reinterpret_cast<const PageId*>(tokens() + token_count());
  }
  const SegmentFacts& facts() const { return facts_; }
  // Names its place in the ledger, for the next process, too; 0: it has none.
  uint64_t ledger_place() const {
    if (arena_ == nullptr) return 0;
    return arena_->OffsetOf(reinterpret_cast<const std::byte*>(this)) + 1;
  }
  // The print of each page, kept by ReuseLearner; null if there are no prints.
  const PagePrint* prints() const { return prints_.get(); }

 private:
  friend class SegmentRef;
  Segment(const SegmentFacts& facts, SegmentArena* arena)
      : facts_(facts), arena_(arena) {}

  SegmentFacts facts_;  // first: SegmentArena needs its check there
  std::atomic<uint32_t> references_ = 1;
  SegmentArena* const arena_;  // where it is; null: on the heap
  std::unique_ptr<PagePrint[]> prints_;
};

// A counted reference to a segment, or to none. One thread at a time may use a
// reference; several threads may have references to the same segment.
class SegmentRef {
 public:
  SegmentRef() = default;
  // Makes a segment with copies of `tokens` and of the ids `pages` of the pages
  // that they spell. It is in `arena`, which outlives it; if that is null or
  // has no room, it is on the heap, and the ledger does not have it.
  static SegmentRef Copy(std::span<const Token> tokens,
                         std::span<const PageId> pages,
                         SegmentArena* arena = nullptr) {
    return Copy(tokens, {}, pages, arena);
  }
  // The same for tokens in two runs.
  static SegmentRef Copy(std::span<const Token> first_tokens,
                         std::span<const Token> more_tokens,
                         std::span<const PageId> pages,
                         SegmentArena* arena = nullptr);
  // Takes over the segment in a cell of an earlier process. None if its facts
  // are damaged, or if it was in no tree.
  static SegmentRef TakeOver(std::byte* cell, size_t bytes,
                             SegmentArena* arena);

  SegmentRef(const SegmentRef& other) : segment_(other.segment_) {
    if (segment_ != nullptr) {
      segment_->references_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  SegmentRef(SegmentRef&& other) noexcept
      : segment_(std::exchange(other.segment_, nullptr)) {}
  SegmentRef& operator=(SegmentRef other) noexcept {
    std::swap(segment_, other.segment_);
    return *this;
  }
  ~SegmentRef();

  const Segment& operator*() const { return *segment_; }
  const Segment* operator->() const { return segment_; }
  // Notes that the segment is in the tree. From now on the next process may
  // take it over. Does nothing if it is on the heap.
  void Publish(const SegmentFacts::Place& place);
  // The same for a segment without pages, which is in no tree.
  void Publish() { Publish(SegmentFacts::Place{}); }
  // Notes that it has left the tree, although there may be other references.
  void Withdraw();
  // Counts `pages` of the segment as evicted.
  void NoteEvicted(uint32_t pages);
  // Counts `pages` of the segment as locked, or as unlocked.
  void NoteLocked(uint32_t pages) { segment_->facts_.locked_pages += pages; }
  void NoteUnlocked(uint32_t pages) { segment_->facts_.locked_pages -= pages; }
  void NoteUsed(uint64_t last_access, uint32_t hit_count, int32_t priority) {
    segment_->facts_.last_access = last_access;
    segment_->facts_.hit_count = hit_count;
    segment_->facts_.priority = priority;
  }
  // Returns the prints of its pages; if there are none, makes them with the
  // value 0, not known.
  PagePrint* MakePrints();
  void DropPrints() { segment_->prints_.reset(); }
  explicit operator bool() const { return segment_ != nullptr; }
  // Whether both refer to the same segment.
  friend bool operator==(const SegmentRef&, const SegmentRef&) = default;

 private:
  explicit SegmentRef(Segment* segment) : segment_(segment) {}

  Segment* segment_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_SEGMENT_H_
