#include "tiers/shared/block_window.h"

#include <algorithm>

namespace pando {
namespace {

// A thread takes about so many bytes at once: several small blocks share a
// round trip.
constexpr size_t kPartBytes = size_t{1} << 20;
// A window has at least so many parts, so that every thread gets some of it.
constexpr size_t kMinParts = 4;

}  // namespace

BlockWindow::BlockWindow(size_t bytes)
    : values_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}

std::span<RemoteStore::Transfer> BlockWindow::Begin(size_t count,
                                                    size_t value_bytes) {
  value_bytes_ = value_bytes;
  blocks_.assign(count, {});
  for (size_t i = 0; i < count; ++i) {
    blocks_[i].value = {values_.get() + i * value_bytes_, value_bytes_};
    blocks_[i].status = absl::DeadlineExceededError("timeout");
  }
  taken_ = 0;
  are_placed_.assign(count, 0);
  absl::MutexLock hold(&mutex_);
  is_closed_ = false;
  place_status_ = absl::OkStatus();
  return blocks_;
}

void BlockWindow::Retain(const std::vector<bool>& are_kept) {
  size_t kept = 0;
  for (size_t i = 0; i < are_kept.size(); ++i) {
    if (are_kept[i]) blocks_[kept++] = blocks_[i];
  }
  blocks_.resize(kept);
  are_placed_.resize(kept);
}

std::span<RemoteStore::Transfer> BlockWindow::TakePart() {
  const size_t share = (blocks_.size() + kMinParts - 1) / kMinParts;
  const size_t part = std::clamp<size_t>(kPartBytes / value_bytes_, 1, share);
  const size_t begin = std::min(taken_.fetch_add(part), blocks_.size());
  return std::span(blocks_).subspan(begin,
                                    std::min(part, blocks_.size() - begin));
}

void BlockWindow::Place(const RemoteStore::Transfer& block,
                        absl::FunctionRef<absl::Status(size_t)> place) {
  const auto number = static_cast<size_t>(&block - blocks_.data());
  absl::Status status;
  {
    absl::ReaderMutexLock hold(&mutex_);
    if (is_closed_) return;
    status = place(number);
    are_placed_[number] = status.ok() ? 1 : 0;
  }
  if (status.ok()) return;
  absl::MutexLock hold(&mutex_);
  is_closed_ = true;
  place_status_ = status;
}

BlockWindow::Placed BlockWindow::Close() {
  absl::MutexLock hold(&mutex_);
  is_closed_ = true;
  const auto missing = std::ranges::find(are_placed_, 0);
  return {.front = static_cast<size_t>(missing - are_placed_.begin()),
          .status = place_status_};
}

}  // namespace pando
