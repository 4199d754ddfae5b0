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

// Finds pages that were written while they were cached. It takes checksums of a
// share of the pages when they are inserted, and compares them each time these
// pages are handed out, and when they are reused. A difference is counted and
// logged, with the page id alone.
//
// Owned by Server; used in the turn, by handlers before they answer and by
// tiers. Meanwhile no page is evicted or handed out, and no worker writes to a
// page before it was told that the page is its own. So no page may rightfully
// change while it is read, and the cache's mutex need not be held.
class PageVerifier {
 public:
  // How many pages were compared, and how many of them had changed.
  struct Counts {
    uint64_t checks = 0;
    uint64_t violations = 0;
  };

  // `share` is the share of the pages that are checked, from 0 to 1.
  PageVerifier(std::unique_ptr<PageChecksummer> checksummer,
               uint32_t capacity_pages, double share);

  // To be called when a call has inserted these pages into the tree.
  void Inserted(std::span<const PageId> pages);
  // To be called when a call hands out these pages of the tree.
  void HandedOut(std::span<const PageId> pages);
  // To be called when a call has reserved these pages, which were free before.
  void Reserved(std::span<const PageId> pages);

  // Thread-safe.
  Counts counts() const { return {checks_, violations_}; }

 private:
  // Makes sampled_ the list of those of `pages` that have a checksum.
  void Sample(std::span<const PageId> pages);
  // Compares the pages of sampled_. `found_when` is for the log.
  void Check(const char* found_when);
  // Returns the checksums of sampled_. Returns none if it is empty, or if the
  // pages cannot be read, which is logged.
  std::optional<std::vector<uint64_t>> Read();

  const std::unique_ptr<PageChecksummer> checksummer_;
  const double share_;
  std::atomic<uint64_t> checks_ = 0;
  std::atomic<uint64_t> violations_ = 0;
  absl::InsecureBitGen random_;
  std::vector<std::optional<uint64_t>> checksums_;  // by page id
  std::vector<uint32_t> sampled_;  // scratch: page ids of one call
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_PAGE_VERIFIER_H_
