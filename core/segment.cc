#include "core/segment.h"

#include <cstring>
#include <new>
#include <type_traits>

namespace pando {

static_assert(sizeof(PageId) == sizeof(uint32_t));
static_assert(std::is_trivially_copyable_v<PageId>);

SegmentRef SegmentRef::Copy(std::span<const Token> tokens,
                            std::span<const PageId> pages) {
  void* memory = ::operator new(sizeof(Segment) + tokens.size_bytes() +
                                pages.size_bytes());
  auto* segment = new (memory) Segment(static_cast<uint32_t>(tokens.size()),
                                       static_cast<uint32_t>(pages.size()));
  std::memcpy(const_cast<Token*>(segment->tokens()), tokens.data(),
              tokens.size_bytes());
  std::memcpy(const_cast<PageId*>(segment->pages()), pages.data(),
              pages.size_bytes());
  return SegmentRef(segment);
}

SegmentRef::~SegmentRef() {
  if (segment_ == nullptr || --segment_->references_ > 0) return;
  segment_->~Segment();
  ::operator delete(segment_);
}

}  // namespace pando
