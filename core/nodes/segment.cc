#include "core/nodes/segment.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/ledger.h"

namespace pando {

static_assert(sizeof(PageId) == sizeof(uint32_t));
static_assert(std::is_trivially_copyable_v<PageId>);
static_assert(std::is_trivially_copyable_v<SegmentFacts>);

namespace {

uint64_t SizeOfSegment(uint64_t token_count, uint64_t page_count) {
  return sizeof(Segment) + token_count * sizeof(Token) +
         page_count * sizeof(PageId);
}

// Never 0.
uint32_t CheckOf(const SegmentFacts& facts) {
  const auto bytes = std::as_bytes(std::span(&facts, 1));
  const uint32_t check =
      CheckOfBytes(bytes.subspan(offsetof(SegmentFacts, token_count),
                                 offsetof(SegmentFacts, used_pages) -
                                     offsetof(SegmentFacts, token_count)),
                   0);
  return check == 0 ? 1 : check;
}

}  // namespace

SegmentRef SegmentRef::Copy(std::span<const Token> first_tokens,
                            std::span<const Token> more_tokens,
                            std::span<const PageId> pages,
                            SegmentArena* arena) {
  const size_t token_count = first_tokens.size() + more_tokens.size();
  const size_t bytes = SizeOfSegment(token_count, pages.size());
  void* memory = arena == nullptr ? nullptr : arena->Allocate(bytes);
  if (memory == nullptr) {
    arena = nullptr;
    memory = ::operator new(bytes);
  }
  SegmentFacts facts;
  facts.token_count = static_cast<uint32_t>(token_count);
  facts.page_count = facts.used_pages = static_cast<uint32_t>(pages.size());
  auto* segment = new (memory) Segment(facts, arena);
  auto* tokens = const_cast<Token*>(segment->tokens());
  std::copy(first_tokens.begin(), first_tokens.end(), tokens);
  std::copy(more_tokens.begin(), more_tokens.end(),
            tokens + first_tokens.size());
  std::copy(pages.begin(), pages.end(), const_cast<PageId*>(segment->pages()));
  return SegmentRef(segment);
}

SegmentRef SegmentRef::TakeOver(std::byte* cell, size_t bytes,
                                SegmentArena* arena) {
  SegmentFacts facts;
  std::memcpy(static_cast<void*>(&facts), cell, sizeof(facts));
  if (facts.check != CheckOf(facts) ||
      SizeOfSegment(facts.token_count, facts.page_count) > bytes ||
      (facts.used_pages == 0) != (facts.page_count == 0) ||
      facts.used_pages > facts.page_count) {
    return SegmentRef();
  }
  return SegmentRef(new (cell) Segment(facts, arena));
}

void SegmentRef::Publish(const SegmentFacts::Place& place) {
  if (segment_->arena_ == nullptr) return;
  SegmentFacts& facts = segment_->facts_;
  facts.namespace_cell = place.namespace_cell;
  facts.before = place.before;
  facts.depth_pages = place.depth_pages;
  StoresBefore();
  facts.check = CheckOf(facts);
  StoresBefore();
}

void SegmentRef::Withdraw() {
  segment_->facts_.check = 0;
  StoresBefore();
}

void SegmentRef::NoteEvicted(uint32_t pages) {
  segment_->facts_.used_pages -= pages;
  if (segment_->facts_.used_pages == 0) segment_->facts_.check = 0;
  StoresBefore();
}

PagePrint* SegmentRef::MakePrints() {
  if (segment_->prints_ == nullptr) {
    segment_->prints_ = std::make_unique<PagePrint[]>(segment_->page_count());
  }
  return segment_->prints_.get();
}

SegmentRef::~SegmentRef() {
  if (segment_ == nullptr ||
      segment_->references_.fetch_sub(1, std::memory_order_acq_rel) > 1) {
    return;
  }
  SegmentArena* const arena = segment_->arena_;
  segment_->~Segment();
  if (arena == nullptr) {
    ::operator delete(segment_);
  } else {
    arena->Free(reinterpret_cast<std::byte*>(segment_));
  }
}

}  // namespace pando
