#include "tiers/shared/remote_loads.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"

namespace pando {
namespace {

constexpr size_t kAskers = 2;
// The most bytes of a window; a larger block has a window of its own.
constexpr size_t kLoadWindowBytes = size_t{32} << 20;

// Returns whether the store has answered, whether it has the block or not.
bool IsAnswer(const absl::Status& status) {
  return status.ok() || absl::IsNotFound(status) || absl::IsDataLoss(status);
}

}  // namespace

RemoteLoads::RemoteLoads(RemoteBlocks* blocks, absl::Duration ask_timeout,
                         absl::Duration get_timeout)
    : blocks_(blocks),
      ask_timeout_(ask_timeout),
      get_timeout_(get_timeout),
      window_blocks_(blocks->BlocksOf(kLoadWindowBytes)),
      askers_(kAskers),
      getters_(RemoteBlocks::kWindowThreads) {}

bool RemoteLoads::MayLoad() const {
  const absl::Time now = MonotonicNow();
  return !blocks_->eraser().is_erasing() && ask_breaker_.Admits(now) &&
         load_breaker_.Admits(now);
}

void RemoteLoads::AskFailed(size_t pages, const absl::Status& status) {
  ask_breaker_.Failed(MonotonicNow());
  ReadFailed(pages, status);
}

// A store that gave at least the first block stays in use, even if it is slow
// or one of its nodes is gone.
void RemoteLoads::LoadFailed(size_t front, size_t pages,
                             const absl::Status& status) {
  if (front == 0) load_breaker_.Failed(MonotonicNow());
  ReadFailed(pages, status);
}

void RemoteLoads::ReadFailed(size_t pages, const absl::Status& status) {
  failed_ += pages;
  Log(LogLevel::kError, "shared pages cannot be read",
      {{"pages", pages}, {"error", status.message()}});
}

size_t RemoteLoads::CountPresent(uint64_t ns_digest,
                                 std::span<const PageHash> run) {
  if (run.empty() || !MayLoad()) return 0;
  struct Question {
    std::vector<BlockKey> keys;
    absl::StatusOr<RemoteStore::Presence> presence = DeadlineThreads::Timeout();
  };
  const auto question = std::make_shared<Question>();
  for (const PageHash& hash : run) {
    question->keys.push_back({.ns_digest = ns_digest, .hash = hash});
  }
  const absl::Time deadline = MonotonicNow() + ask_timeout_ / 2;
  const bool is_in_time =
      askers_.Run({[this, question, deadline] {
                    question->presence =
                        blocks_->store().CountPresent(question->keys, deadline);
                  }},
                  ask_timeout_);
  if (!is_in_time || !question->presence.ok()) {
    AskFailed(run.size(), is_in_time ? question->presence.status()
                                     : DeadlineThreads::Timeout());
    return 0;
  }
  const size_t present = question->presence->blocks;
  // Another machine may have erased blocks that are known here.
  if (question->presence->lacks_next) {
    blocks_->known().Remove(run.subspan(present));
  }
  if (present < run.size() && MonotonicNow() >= deadline) {
    // A slow answer counts as a failure, because other prompts wait to be
    // looked up meanwhile.
    ask_breaker_.Failed(MonotonicNow());
    return present;
  }
  ask_breaker_.Succeeded();
  return present;
}

size_t RemoteLoads::Load(uint64_t ns_digest, std::span<const PageHash> run,
                         std::span<const PageId> pages) {
  size_t loaded = 0;
  while (loaded < run.size() && MayLoad()) {
    const size_t count = std::min(window_blocks_, run.size() - loaded);
    const size_t more = LoadWindow(ns_digest, run.subspan(loaded, count),
                                   pages.subspan(loaded, count));
    loaded += more;
    if (more < count) break;
  }
  loaded_ += loaded;
  return loaded;
}

size_t RemoteLoads::LoadWindow(uint64_t ns_digest,
                               std::span<const PageHash> run,
                               std::span<const PageId> pages) {
  if (window_ == nullptr) window_ = blocks_->NewWindow(window_blocks_);
  const std::span<RemoteStore::Transfer> blocks =
      blocks_->Begin(*window_, run.size());
  for (size_t i = 0; i < run.size(); ++i) {
    blocks[i].key = {.ns_digest = ns_digest, .hash = run[i]};
  }
  const absl::Time deadline = MonotonicNow() + get_timeout_ / 2;
  const auto work = [this, window = window_, pages, deadline] {
    GetParts(*window, pages, deadline);
  };
  const bool is_in_time = getters_.Run(
      std::vector<DeadlineThreads::Work>(RemoteBlocks::kWindowThreads, work),
      get_timeout_);
  const BlockWindow::Placed placed = window_->Close();
  if (is_in_time) {
    EndLoad(placed.front);
  } else {
    window_ = nullptr;
    LoadFailed(placed.front, run.size() - placed.front,
               DeadlineThreads::Timeout());
  }
  if (!placed.status.ok()) {
    // This is no failure of the store.
    ++failed_;
    Log(LogLevel::kError, "a shared page cannot be copied to the pool",
        {{"error", placed.status.message()}});
  }
  return placed.front;
}

// Each page is filled right after its block came, while that is still in the
// CPU's cache. `pages` belongs to the caller and must not be used once the
// window is closed.
void RemoteLoads::GetParts(BlockWindow& window, std::span<const PageId> pages,
                           absl::Time deadline) {
  const BlockValues& values = blocks_->values();
  while (MonotonicNow() < deadline) {
    const std::span<RemoteStore::Transfer> part = window.TakePart();
    if (part.empty()) return;
    blocks_->store().Get(part, deadline);
    for (RemoteStore::Transfer& block : part) {
      if (block.status.ok()) {
        block.status = values.Verify(block.key.hash, block.value);
      }
      if (block.status.ok()) {
        window.Place(block, [&](size_t number) {
          return values.CopyIn(block.value, pages[number]);
        });
      }
      if (absl::IsDataLoss(block.status)) blocks_->Erase(block.key);
    }
  }
}

void RemoteLoads::EndLoad(size_t front) {
  size_t failed = 0;
  absl::Status status;
  for (const RemoteStore::Transfer& block : window_->blocks()) {
    if (absl::IsDataLoss(block.status)) {
      ++damaged_;
      Log(LogLevel::kError, "a shared page is not what it was",
          {{"error", block.status.message()}});
    } else if (!IsAnswer(block.status)) {
      ++failed;
      status = block.status;
    }
  }
  if (failed > 0) {
    LoadFailed(front, failed, status);
  } else {
    load_breaker_.Succeeded();
  }
}

void RemoteLoads::Tell(TierFigures& figures) const {
  figures.loaded_pages = loaded_;
  figures.failed_reads = failed_;
  figures.damaged_pages = damaged_;
  figures.are_loads_refused = ask_breaker_.is_open() || load_breaker_.is_open();
}

}  // namespace pando
