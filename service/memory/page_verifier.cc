#include "service/memory/page_verifier.h"

#include <string>
#include <utility>

#include "os/logging/log.h"

namespace pando {

PageVerifier::PageVerifier(std::unique_ptr<PageChecksummer> checksummer,
                           uint32_t capacity_pages, double share)
    : checksummer_(std::move(checksummer)),
      share_(share),
      checksums_(capacity_pages) {}

void PageVerifier::Inserted(std::span<const PageId> pages) {
  sampled_.clear();
  for (PageId page : pages) {
    if (absl::Bernoulli(random_, share_)) sampled_.push_back(page.value());
  }
  const std::optional<std::vector<uint64_t>> checksums = Read();
  if (!checksums.has_value()) return;
  for (size_t i = 0; i < sampled_.size(); ++i) {
    checksums_[sampled_[i]] = (*checksums)[i];
  }
}

void PageVerifier::HandedOut(std::span<const PageId> pages) {
  Sample(pages);
  Check("handed out");
}

void PageVerifier::Reserved(std::span<const PageId> pages) {
  Sample(pages);
  Check("reused");
  for (uint32_t page : sampled_) checksums_[page].reset();
}

void PageVerifier::Sample(std::span<const PageId> pages) {
  sampled_.clear();
  for (PageId page : pages) {
    if (checksums_[page.value()].has_value()) sampled_.push_back(page.value());
  }
}

void PageVerifier::Check(const char* found_when) {
  const std::optional<std::vector<uint64_t>> checksums = Read();
  if (!checksums.has_value()) return;
  checks_ += sampled_.size();
  for (size_t i = 0; i < sampled_.size(); ++i) {
    std::optional<uint64_t>& expected = checksums_[sampled_[i]];
    if (expected == (*checksums)[i]) continue;
    // The new checksum is expected from now on, so that each change is reported
    // once.
    expected = (*checksums)[i];
    ++violations_;
    Log(LogLevel::kError, "a page was written after it was inserted",
        {{"page", sampled_[i]}, {"found_when", found_when}});
  }
}

std::optional<std::vector<uint64_t>> PageVerifier::Read() {
  if (sampled_.empty()) return std::nullopt;
  absl::StatusOr<std::vector<uint64_t>> checksums =
      checksummer_->Checksum(sampled_);
  if (checksums.ok()) return *std::move(checksums);
  Log(LogLevel::kError, "pages cannot be verified",
      {{"error", checksums.status().message()}});
  return std::nullopt;
}

}  // namespace pando
