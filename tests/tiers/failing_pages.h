#ifndef PANDO_TESTS_TIERS_FAILING_PAGES_H_
#define PANDO_TESTS_TIERS_FAILING_PAGES_H_

#include <memory>

#include "tiers/copying/mapped_pages.h"

namespace pando {

// Copies pages of a pool in host memory, or fails, as a test orders.
class FailingPages final : public PageBlocks {
 public:
  struct Orders {
    absl::Status out;
    absl::Status in;
  };

  // Both must outlive this object.
  FailingPages(const KvPool& pool, const Orders* orders)
      : PageBlocks(pool), orders_(orders), pages_(*MappedPages::Map(pool)) {}

  absl::Status CopyOut(PageId page, std::byte* block) const override {
    return orders_->out.ok() ? pages_->CopyOut(page, block) : orders_->out;
  }
  absl::Status CopyIn(const std::byte* block, PageId page) const override {
    return orders_->in.ok() ? pages_->CopyIn(block, page) : orders_->in;
  }

 private:
  const Orders* const orders_;
  const std::unique_ptr<MappedPages> pages_;
};

}  // namespace pando

#endif  // PANDO_TESTS_TIERS_FAILING_PAGES_H_
