#include "core/nodes/segment.h"

#include <algorithm>
#include <new>
#include <type_traits>

namespace pando {

static_assert(sizeof(PageId) == sizeof(uint32_t));
static_assert(std::is_trivially_copyable_v<PageId>);

SegmentRef SegmentRef::Copy(std::span<const Token> first_tokens,
                            std::span<const Token> more_tokens,
                            std::span<const PageId> pages) {
  const size_t token_count = first_tokens.size() + more_tokens.size();
  void* memory = ::operator new(sizeof(Segment) + token_count * sizeof(Token) +
                                pages.size_bytes());
  auto* segment = new (memory) Segment(static_cast<uint32_t>(token_count),
                                       static_cast<uint32_t>(pages.size()));
  auto* tokens = const_cast<Token*>(segment->tokens());
  std::copy(first_tokens.begin(), first_tokens.end(), tokens);
  std::copy(more_tokens.begin(), more_tokens.end(),
            tokens + first_tokens.size());
  std::copy(pages.begin(), pages.end(), const_cast<PageId*>(segment->pages()));
  return SegmentRef(segment);
}

PagePrint* SegmentRef::MakePrints() {
  if (segment_->prints_ == nullptr) {
    segment_->prints_ = std::make_unique<PagePrint[]>(segment_->page_count_);
  }
  return segment_->prints_.get();
}

SegmentRef::~SegmentRef() {
  if (segment_ == nullptr ||
      segment_->references_.fetch_sub(1, std::memory_order_acq_rel) > 1) {
    return;
  }
  segment_->~Segment();
  ::operator delete(segment_);
}

}  // namespace pando
