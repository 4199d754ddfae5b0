#ifndef PANDO_TIERS_LOCAL_LOCAL_TIER_H_
#define PANDO_TIERS_LOCAL_LOCAL_TIER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/ids.h"
#include "core/nodes/page_hash.h"
#include "events/tier_changes.h"
#include "tiers/copying/page_blocks.h"
#include "tiers/local/io_threads.h"
#include "tiers/local/slot_store.h"
#include "tiers/local/tier_index.h"
#include "tiers/store_target.h"
#include "tiers/tier_figures.h"

namespace pando {

// Copies of pages in slots of one pandod, which are of its own machine. Owned
// by Tiers. One thread stores, one loads, at the same time; all else is
// thread-safe.
class LocalTier final : public StoreTarget, public TierChanges {
 public:
  // Finds the blocks that the store has already.
  LocalTier(std::unique_ptr<PageBlocks> pages,
            std::unique_ptr<SlotStore> store);

  size_t capacity_pages() const override { return store_->slots(); }
  size_t max_pages_per_store() const override;
  // These can be loaded.
  size_t CountStored(std::span<const PageHash> run) const override;
  bool TouchIfStored(std::span<const PageHash> prompt) override;
  // Room is not made of what the tier has of this prompt already.
  void BeginPrompt(uint64_t, std::span<const PageHash> prompt) override {
    Touch(prompt);
  }
  void Store(uint64_t ns_digest, std::span<const PageHash> prompt, size_t begin,
             std::span<const PageId> pages,
             const std::function<bool()>& confirm) override;
  void Tell(const HashedPrompt& prompt) override;
  void CountDropped(uint64_t pages) override { dropped_ += pages; }

  void FollowChanges() override { is_followed_ = true; }
  std::vector<TierChange> TakeChanges() override;

  void Touch(std::span<const PageHash> prompt);
  // Fills `pages` with the blocks of `run`. Returns how many from the front
  // are what they were when they were stored; the others have any contents.
  size_t Load(std::span<const PageHash> run, std::span<const PageId> pages);

  // Forgets what is stored of a namespace, or being stored; none: of all. It
  // does not touch the store: EraseForgotten, which is called after it, sees to
  // it that nothing of it is found after a restart, and gives its slots back.
  void Forget(std::optional<uint64_t> ns_digest);
  void EraseForgotten();
  // Which configuration of the model computes from now on, told once, 0 before
  // that. What an earlier process stored of another one, or of none that it
  // knew, is forgotten as by Forget.
  void SetModel(uint32_t model);

  TierFigures figures() const;

 private:
  struct Write {
    SlotStore::Record record;
    PageId page;
    uint32_t slot;
    bool is_done = false;
  };
  struct Read {
    PageHash hash;
    PageId page;
    TierIndex::Place place = {};
    bool is_done = false;
  };

  void Restore();
  // Adds to the changes which blocks that were told of are gone.
  void NoteGone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the block; what is to be written, or none after an error.
  std::optional<Transfer> BeginWrite(Write& write, std::byte* buffer);
  void Erase(uint32_t slot) const;
  // Whether a write succeeded; counts and logs one that did not.
  bool Check(const absl::Status& written, uint32_t slot);
  void EndWrite(const Write& write, bool is_confirmed);
  // The transfer that reads it; none if it is not stored any more.
  std::optional<Transfer> BeginRead(Read& read, std::byte* buffer);
  void EndRead(Read& read, std::byte* buffer, const absl::Status& moved);
  // Whether the block is what was stored; if not, this is counted and logged,
  // and the block erased.
  bool IsIntact(const TierIndex::Place& place, const std::byte* block,
                const absl::Status& moved);
  // Whether the page has the block's bytes now; counts and logs.
  bool Fill(PageId page, const std::byte* block);

  const std::unique_ptr<PageBlocks> pages_;
  const std::unique_ptr<SlotStore> store_;
  mutable absl::Mutex mutex_;
  TierIndex index_ ABSL_GUARDED_BY(mutex_);
  std::vector<TierIndex::Forgotten> forgotten_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint32_t> model_ = 0;
  // Those of what was restored, by slot, until SetModel.
  std::vector<uint32_t> restored_models_ ABSL_GUARDED_BY(mutex_);
  bool is_followed_ = false;
  std::vector<TierChange> changes_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> stored_ = 0;
  std::atomic<uint64_t> loaded_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<uint64_t> failed_reads_ = 0;
  std::atomic<uint64_t> failed_writes_ = 0;
  std::atomic<uint64_t> damaged_ = 0;
  IoThreads writers_;
  IoThreads readers_;
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_LOCAL_TIER_H_
