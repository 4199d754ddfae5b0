#ifndef PANDO_SERVICE_MEMORY_PAGE_VERIFIER_H_
#define PANDO_SERVICE_MEMORY_PAGE_VERIFIER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/random/random.h"
#include "base/ids.h"
#include "gpu/page_checksummer.h"

namespace pando {

// Finds pages that were written while they were cached: keeps a checksum of a
// share of the pages from when they are inserted, and compares it each time
// they are handed out, and when they are reused. A difference is logged, with
// the page id alone, and counted.
//
// Owned by Server. Called by the handlers, on the polling thread, before they
// answer: nothing is evicted or handed out meanwhile, and nobody writes to a
// page before he was told that it is his. So no page changes rightfully while
// it is read, and the cache's mutex is not held.
class PageVerifier {
 public:
  // Pages that were compared, and of these those that had changed.
  struct Counts {
    uint64_t checks = 0;
    uint64_t violations = 0;
  };

  // `share` of the pages, from 0 to 1, are sampled.
  PageVerifier(std::unique_ptr<PageChecksummer> checksummer,
               uint32_t capacity_pages, double share);

  // The pages have entered the tree in this call.
  void Inserted(std::span<const PageId> pages);
  // The pages are in the tree.
  void HandedOut(std::span<const PageId> pages);
  // The pages were free until this call.
  void Reserved(std::span<const PageId> pages);

  // Any thread may call this.
  Counts counts() const { return {checks_, violations_}; }

 private:
  // Those of `pages` that have a checksum, in sampled_.
  void Sample(std::span<const PageId> pages);
  // Compares the pages of sampled_.
  void Check(const char* found_when);
  // None: the pages cannot be read, which is logged.
  std::optional<std::vector<uint64_t>> Read();

  const std::unique_ptr<PageChecksummer> checksummer_;
  const double share_;
  std::atomic<uint64_t> checks_ = 0;
  std::atomic<uint64_t> violations_ = 0;
  absl::InsecureBitGen random_;
  std::vector<std::optional<uint64_t>> checksums_;  // by page
  std::vector<uint32_t> sampled_;                   // of the present call
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_PAGE_VERIFIER_H_
