#include "tiers/blocks/shared_source.h"

#include <algorithm>
#include <cstring>

#include "os/logging/log.h"
#include "os/monotonic_clock.h"

namespace pando {

bool SharedSource::MayRead(const KnownKind& kind) const {
  return !shared_->MayHaveReplaced(kind) && breaker_.Admits(MonotonicNow());
}

void SharedSource::Read(const std::shared_ptr<KnownKind>& kind,
                        std::span<BlockRead> blocks) {
  // A kind that is not read now is NOT_FOUND: it is no failure of the store.
  for (BlockRead& block : blocks) {
    block.status = absl::NotFoundError("the kind is not read now");
  }
  if (!MayRead(*kind) || !kind->is_newest) return;
  for (BlockRead& block : blocks) block.status = DeadlineThreads::Timeout();
  const uint64_t bytes = shared_->seal().ValueBytes(kind->kind);
  const auto job = std::make_shared<Job>(kind, blocks.size() * bytes,
                                         MonotonicNow() + timeout_ / 2);
  const std::span<RemoteStore::Transfer> transfers =
      job->window.Begin(blocks.size(), bytes);
  for (size_t i = 0; i < blocks.size(); ++i) {
    job->keys.emplace_back(blocks[i].key);
    transfers[i].key = SharedBlocks::KeyOf(blocks[i].name);
  }
  const bool is_in_time =
      getters_.Run(std::vector<DeadlineThreads::Work>(
                       SharedBlocks::kCopyThreads,
                       [this, job, blocks] { GetParts(*job, blocks); }),
                   timeout_);
  job->window.Close();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (job->window.IsPlaced(i)) {
      blocks[i].status = absl::OkStatus();
    } else if (is_in_time) {
      // If the wait was given up, threads may still set the status.
      blocks[i].status = transfers[i].status;
    }
  }
  CountFailures(blocks);
}

void SharedSource::GetParts(Job& job, std::span<BlockRead> blocks) {
  const BlockSeal& seal = shared_->seal();
  while (MonotonicNow() < job.deadline) {
    const std::span<RemoteStore::Transfer> part = job.window.TakePart();
    if (part.empty()) return;
    shared_->store().Get(part, job.deadline);
    for (RemoteStore::Transfer& each : part) {
      const size_t number = &each - job.window.blocks().data();
      if (each.status.ok()) {
        each.status = seal.Verify(job.kind->kind, job.keys[number], each.value);
      }
      if (absl::IsDataLoss(each.status)) {
        ++counts_->damaged_blocks;
        Log(LogLevel::kError, "a shared block is not what it was",
            {{"error", each.status.message()}});
        shared_->Erase({each.key.ns_digest, each.key.hash});
        each.status = absl::NotFoundError("it was damaged");
      }
      if (!each.status.ok()) continue;
      job.window.Place(each, [&](size_t placed) {
        const auto block = each.value.subspan(seal.bytes());
        std::memcpy(blocks[placed].value.data(), block.data(), block.size());
        return absl::OkStatus();
      });
    }
  }
}

void SharedSource::CountFailures(std::span<const BlockRead> blocks) {
  std::vector<BlockName> absent;
  size_t failed = 0;
  absl::Status error;
  for (const BlockRead& block : blocks) {
    if (block.status.ok()) continue;
    if (absl::IsNotFound(block.status)) {
      absent.push_back(block.name);
    } else {
      ++failed;
      error = block.status;
    }
  }
  shared_->NoteAbsent(absent);
  if (failed == 0) {
    breaker_.Succeeded();
    return;
  }
  // A store that gave some of the blocks stays in use.
  if (failed == blocks.size()) breaker_.Failed(MonotonicNow());
  counts_->failed_reads += failed;
  Log(LogLevel::kError, "shared blocks cannot be read",
      {{"blocks", failed}, {"error", error.message()}});
}

}  // namespace pando
