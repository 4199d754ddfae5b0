#ifndef PANDO_CORE_NODES_SEGMENT_H_
#define PANDO_CORE_NODES_SEGMENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/ids.h"

namespace pando {

// A short hash of a page and of all pages before it, see
// core/reuse/prefix_hash.h. It is 0 while it is not known.
using PagePrint = uint32_t;

// A run of whole pages: the tokens that spell them and their page ids, in one
// allocation. Nodes hold slices of a segment, so that splitting a node copies
// nothing. SegmentRef makes a segment, and frees it with its last reference.
// Tokens and page ids never change, so any thread with a reference may read
// them. The prints belong to the cache and need its mutex.
class Segment {
 public:
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  uint32_t page_count() const { return page_count_; }
  // How many pages the slices still contain; the others were evicted.
  uint32_t used_pages() const { return used_pages_; }
  const Token* tokens() const {
    return reinterpret_cast<const Token*>(this + 1);
  }
  uint32_t token_count() const { return token_count_; }
  const PageId* pages() const {
    return reinterpret_cast<const PageId*>(tokens() + token_count_);
  }
  // The print of each page, kept by ReuseLearner; null if there are no prints.
  const PagePrint* prints() const { return prints_.get(); }

 private:
  friend class SegmentRef;
  Segment(uint32_t token_count, uint32_t page_count)
      : used_pages_(page_count),
        token_count_(token_count),
        page_count_(page_count) {}

  std::atomic<uint32_t> references_ = 1;
  uint32_t used_pages_;  // guarded by the cache's mutex, as are the prints
  const uint32_t token_count_;
  const uint32_t page_count_;
  std::unique_ptr<PagePrint[]> prints_;
};

// A counted reference to a segment, or to none. One thread at a time may use a
// reference; several threads may have references to the same segment.
class SegmentRef {
 public:
  SegmentRef() = default;
  // Makes a segment with copies of `tokens` and of the ids `pages` of the pages
  // that they spell.
  static SegmentRef Copy(std::span<const Token> tokens,
                         std::span<const PageId> pages) {
    return Copy(tokens, {}, pages);
  }
  // The same for tokens in two runs.
  static SegmentRef Copy(std::span<const Token> first_tokens,
                         std::span<const Token> more_tokens,
                         std::span<const PageId> pages);

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
  // Counts `pages` of the segment as evicted.
  void NoteEvicted(uint32_t pages) { segment_->used_pages_ -= pages; }
  // Returns the prints of its pages; if there are none, makes them with the
  // value 0, not known.
  PagePrint* MakePrints();
  void DropPrints() { segment_->prints_.reset(); }
  explicit operator bool() const { return segment_ != nullptr; }

 private:
  explicit SegmentRef(Segment* segment) : segment_(segment) {}

  Segment* segment_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_SEGMENT_H_
