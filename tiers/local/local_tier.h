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

// Copies of pages in slots on the machine of one pandod: in host memory, or on
// a disk. Owned by Tiers. One thread stores and one loads, at the same time;
// the other methods are thread-safe, but FollowChanges must come first.
class LocalTier final : public StoreTarget, public TierChanges {
 public:
  // Takes in the blocks that the store already has.
  LocalTier(std::unique_ptr<PageBlocks> pages,
            std::unique_ptr<SlotStore> store);

  size_t capacity_pages() const override { return store_->slots(); }
  size_t max_pages_per_store() const override;
  // The pages that it counts can be loaded.
  size_t CountStored(std::span<const PageHash> run) const override;
  bool TouchIfStored(std::span<const PageHash> prompt) override;
  // Counts as a use, so that stores do not evict blocks of this prompt.
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

  // Counts as a use of the blocks of a prompt that the tier has.
  void Touch(std::span<const PageHash> prompt);
  // Fills `pages` with the blocks of `run`. Returns how many pages from the
  // front now hold what was stored; the contents of the others are undefined.
  size_t Load(std::span<const PageHash> run, std::span<const PageId> pages);

  // Forgets the blocks of a namespace, or of all namespaces with none,
  // including those that are being stored. Does no I/O. EraseForgotten must be
  // called after it: it erases their records, so that they are not found after
  // a restart, and frees their slots.
  void Forget(std::optional<uint64_t> ns_digest);
  // Erases the records of the blocks that Forget and SetModel have forgotten,
  // and frees their slots. Waits until the disk has done so.
  void EraseForgotten();
  // Says which configuration of the model computes from now on; it is 0 before
  // that. Called once. Forgets, as Forget does, the blocks that an earlier
  // process has stored of another configuration, or of an unknown one.
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

  // Takes in the blocks that an earlier process has stored.
  void Restore();
  // Adds a change for each reported block that is gone.
  void NoteGone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies the page to its block. Returns the transfer that writes the block,
  // or none after an error.
  std::optional<Transfer> BeginWrite(Write& write, std::byte* buffer);
  // Erases the record of a slot; logs an error.
  void Erase(uint32_t slot) const;
  // Returns whether a write succeeded; counts and logs it if not.
  bool Check(const absl::Status& written, uint32_t slot);
  // Makes a written block findable, or frees its slot if the write failed or
  // was not confirmed.
  void EndWrite(const Write& write, bool is_confirmed);
  // Returns the transfer that reads the block, or none if it is not stored any
  // more.
  std::optional<Transfer> BeginRead(Read& read, std::byte* buffer);
  void EndRead(Read& read, std::byte* buffer, const absl::Status& moved);
  // Returns whether the block is what was stored. If not, counts and logs this,
  // and erases the block's record.
  bool IsIntact(const TierIndex::Place& place, const std::byte* block,
                const absl::Status& moved);
  // Copies the block to the page. Returns whether that succeeded; counts it,
  // and logs an error.
  bool Fill(PageId page, const std::byte* block);

  const std::unique_ptr<PageBlocks> pages_;
  const std::unique_ptr<SlotStore> store_;
  mutable absl::Mutex mutex_;
  TierIndex index_ ABSL_GUARDED_BY(mutex_);
  std::vector<TierIndex::Forgotten> forgotten_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint32_t> model_ = 0;
  // The models of restored blocks, by slot. It is emptied by SetModel.
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
