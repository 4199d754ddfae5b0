#include "tiers/shared/remote_stores.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "tiers/shared/touch_in_time.h"

namespace pando {
namespace {

// The most bytes of a window; a larger block has a window of its own. Two
// windows are used at once.
constexpr size_t kStoreWindowBytes = size_t{16} << 20;

}  // namespace

RemoteStores::RemoteStores(RemoteBlocks* blocks, absl::Duration put_timeout)
    : blocks_(blocks),
      put_timeout_(put_timeout),
      window_blocks_(blocks->BlocksOf(kStoreWindowBytes)),
      putters_(RemoteBlocks::kWindowThreads) {}

bool RemoteStores::MayStore() const {
  return !blocks_->eraser().is_erasing() && breaker_.Admits(MonotonicNow());
}

void RemoteStores::Failed(size_t pages, const absl::Status& status) {
  breaker_.Failed(MonotonicNow());
  failed_ += pages;
  Log(LogLevel::kError, "pages cannot be shared",
      {{"pages", pages}, {"error", status.message()}});
}

// One call tells the store that blocks are in use, and learns which of them it
// has.
void RemoteStores::BeginPrompt(uint64_t ns_digest,
                               std::span<const PageHash> prompt) {
  KnownBlocks<PageHash>& known = blocks_->known();
  known.BeginPeriod();
  const uint64_t generation = known.generation();
  const std::vector<BlockKey> keys = blocks_->UnknownOf(ns_digest, prompt, 0);
  if (keys.empty() || !MayStore()) return;
  const absl::StatusOr<std::vector<bool>> are_present =
      TouchInTime(&blocks_->store(), putters_, keys, known.period(),
                  MonotonicNow() + put_timeout_ / 2, put_timeout_);
  if (!are_present.ok()) return Failed(0, are_present.status());
  std::vector<PageHash> present;
  for (size_t i = 0; i < keys.size(); ++i) {
    if ((*are_present)[i]) present.push_back(keys[i].hash);
  }
  known.Add(present, generation);
  // If some are missing, this is no sign that stores succeed: a full store can
  // be touched, too.
  if (present.size() == keys.size()) breaker_.Succeeded();
}

void RemoteStores::Store(uint64_t ns_digest, std::span<const PageHash> prompt,
                         size_t begin, std::span<const PageId> pages,
                         const std::function<bool()>& confirm) {
  const uint64_t generation = blocks_->known().generation();
  const std::vector<BlockKey> keys =
      blocks_->UnknownOf(ns_digest, prompt.first(begin + pages.size()), begin);
  if (!MayStore()) {
    confirm();
    dropped_ += keys.size();
    return;
  }
  if (window_ == nullptr) {
    window_ = spare_window_ != nullptr ? std::exchange(spare_window_, nullptr)
                                       : blocks_->NewWindow(window_blocks_);
  }
  const std::span<RemoteStore::Transfer> blocks =
      blocks_->Begin(*window_, keys.size());
  absl::Status copied;
  for (size_t i = 0; i < keys.size() && copied.ok(); ++i) {
    RemoteStore::Transfer& block = blocks[i];
    block.key = keys[keys.size() - 1 - i];  // the last page comes first
    copied = blocks_->values().CopyOut(pages[block.key.ordinal - 1 - begin],
                                       block.value);
  }
  if (!confirm()) return;
  if (!copied.ok()) {
    failed_ += keys.size();
    Log(LogLevel::kError, "pages cannot be copied to be shared",
        {{"pages", keys.size()}, {"error", copied.message()}});
    return;
  }
  const std::shared_ptr<BlockWindow> window = std::exchange(window_, nullptr);
  // It waits for the window before, because the timeout of this one would run
  // meanwhile.
  EndPrompt();
  const absl::Time deadline = MonotonicNow() + put_timeout_ / 2;
  const auto work = [this, window, used = blocks_->known().period(), deadline,
                     generation] {
    PutParts(*window, used, deadline, generation);
  };
  sending_ = {.window = window,
              .generation = generation,
              .batch = putters_.Begin(std::vector<DeadlineThreads::Work>(
                                          RemoteBlocks::kWindowThreads, work),
                                      put_timeout_)};
}

void RemoteStores::EndPrompt() {
  if (!sending_.has_value()) return;
  const Sending sent = *std::exchange(sending_, std::nullopt);
  if (putters_.End(sent.batch)) {
    EndStore(sent);
    (window_ == nullptr ? window_ : spare_window_) = sent.window;
  } else {
    Failed(sent.window->blocks().size(), DeadlineThreads::Timeout());
  }
}

void RemoteStores::PutParts(BlockWindow& window, absl::Time used,
                            absl::Time deadline, uint64_t generation) {
  const KnownBlocks<PageHash>& known = blocks_->known();
  while (generation == known.generation() && MonotonicNow() < deadline) {
    const std::span<RemoteStore::Transfer> part = window.TakePart();
    if (part.empty()) return;
    for (const RemoteStore::Transfer& block : part) {
      blocks_->values().Seal(block.key.hash, block.value);
    }
    blocks_->store().Put(part, used, deadline);
    if (generation != known.generation()) EraseForgotten(part);
  }
}

// Blocks of a flushed namespace may have reached the store after the flush had
// erased the others.
void RemoteStores::EraseForgotten(
    std::span<const RemoteStore::Transfer> blocks) {
  bool are_erased = true;
  for (const RemoteStore::Transfer& block : blocks) {
    are_erased &= blocks_->Erase(block.key);
  }
  // All blocks of a window are of one namespace, so that is erased again.
  if (!are_erased) blocks_->eraser().Erase(blocks.front().key.ns_digest);
}

void RemoteStores::EndStore(const Sending& sent) {
  const std::span<const RemoteStore::Transfer> blocks = sent.window->blocks();
  if (sent.generation != blocks_->known().generation()) {
    dropped_ += blocks.size();  // they were forgotten meanwhile
    return;
  }
  std::vector<PageHash> stored;
  absl::Status status;
  for (const RemoteStore::Transfer& block : blocks) {
    if (block.status.ok()) {
      stored.push_back(block.key.hash);
    } else {
      status = block.status;
    }
  }
  blocks_->known().Add(stored, sent.generation);
  stored_ += stored.size();
  if (status.ok()) {
    breaker_.Succeeded();
  } else {
    Failed(blocks.size() - stored.size(), status);
  }
}

void RemoteStores::Tell(TierFigures& figures) const {
  figures.stored_pages = stored_;
  figures.dropped_pages = dropped_;
  figures.failed_writes = failed_;
  figures.are_stores_refused = breaker_.is_open();
}

}  // namespace pando
