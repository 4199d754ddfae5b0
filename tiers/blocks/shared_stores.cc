#include "tiers/blocks/shared_stores.h"

#include <pthread.h>

#include <algorithm>
#include <deque>

#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "tiers/shared/touch_in_time.h"

namespace pando {
namespace {

// So many bytes are stored together, unless one block is larger.
constexpr size_t kStoredAtOnce = size_t{16} << 20;
constexpr size_t kMostStoredAtOnce = 256;

}  // namespace

SharedStores::SharedStores(const Parts& parts)
    : parts_(parts),
      putters_(SharedBlocks::kCopyThreads),
      thread_([this] { Run(); }) {}

SharedStores::~SharedStores() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  thread_.join();
}

void SharedStores::Note(StoreNote note) {
  const size_t blocks = StoreNotes::CountBlocks(note, *parts_.kinds);
  absl::MutexLock hold(&mutex_);
  notes_.Add(std::move(note), blocks, *parts_.counts);
}

void SharedStores::BeginDrain() {
  std::deque<StoreNote> dropped;  // destroyed after the mutex: it takes long
  absl::MutexLock hold(&mutex_);
  dropped = notes_.Close();
}

void SharedStores::Run() {
  pthread_setname_np(pthread_self(), "block-share");
  while (true) {
    StoreNote note;
    {
      absl::MutexLock hold(&mutex_);
      mutex_.Await(absl::Condition(this, &SharedStores::HasWork));
      if (is_stopped_) return;
      note = notes_.Take();
    }
    for (const KeysOfKind& keys : *note.keys) {
      if (IsStopped()) return;
      StoreKeys(keys);
    }
  }
}

bool SharedStores::MayStore(const KnownKind& kind) const {
  return !parts_.shared->MayHaveReplaced(kind) &&
         breaker_.Admits(MonotonicNow());
}

void SharedStores::Failed(size_t blocks, const absl::Status& status) {
  breaker_.Failed(MonotonicNow());
  parts_.counts->failed_writes += blocks;
  Log(LogLevel::kError, "blocks cannot be shared",
      {{"blocks", blocks}, {"error", status.message()}});
}

void SharedStores::StoreKeys(const KeysOfKind& keys) {
  Row row = {
      .kind = parts_.kinds->Find(keys.kind), .keys = keys.keys, .names = {}};
  if (row.kind == nullptr || !row.kind->is_newest) return;
  const size_t count = keys.keys.size() / row.kind->kind.key_bytes;
  for (size_t i = 0; i < count; ++i) {
    row.names.push_back(row.kind->NameOf(row.kind->KeyOf(row.keys, i)));
  }
  KnownBlocks<BlockName>& known = parts_.shared->known();
  known.BeginPeriod();
  const std::vector<uint32_t> unknown = known.UnknownOf(row.names);
  if (unknown.empty()) return;
  if (!MayStore(*row.kind)) {
    parts_.counts->dropped_blocks += unknown.size();
    return;
  }
  std::vector<uint32_t> lacked = Touch(row, unknown);
  // The last blocks of a prompt are stored first, because servers that evict by
  // recency would otherwise evict its front first.
  std::ranges::reverse(lacked);
  const size_t most = std::clamp<size_t>(
      kStoredAtOnce / row.kind->kind.block_bytes, 1, kMostStoredAtOnce);
  for (size_t i = 0; i < lacked.size(); i += most) {
    const auto some =
        std::span(lacked).subspan(i, std::min(most, lacked.size() - i));
    if (IsStopped()) return;
    if (MayStore(*row.kind)) {
      StoreSome(row, some);
    } else {
      parts_.counts->dropped_blocks += some.size();
    }
  }
}

std::vector<uint32_t> SharedStores::Touch(
    const Row& row, const std::vector<uint32_t>& positions) {
  SharedBlocks& shared = *parts_.shared;
  const uint64_t generation = shared.known().generation();
  std::vector<BlockKey> keys;
  for (const uint32_t position : positions) {
    keys.push_back(SharedBlocks::KeyOf(row.names[position], position + 1));
  }
  const absl::StatusOr<std::vector<bool>> are_present = TouchInTime(
      &shared.store(), putters_, std::move(keys), shared.known().period(),
      MonotonicNow() + parts_.timeout / 2, parts_.timeout);
  if (!are_present.ok()) {
    Failed(0, are_present.status());
    return positions;
  }
  std::vector<BlockName> present;
  std::vector<uint32_t> lacked;
  for (size_t i = 0; i < positions.size(); ++i) {
    if ((*are_present)[i]) {
      present.push_back(row.names[positions[i]]);
    } else {
      lacked.push_back(positions[i]);
    }
  }
  shared.known().Add(present, generation);
  // If some are missing, this is no sign that stores succeed: a full store can
  // be touched, too.
  if (lacked.empty()) breaker_.Succeeded();
  return lacked;
}

void SharedStores::StoreSome(const Row& row,
                             std::span<const uint32_t> positions) {
  SharedBlocks& shared = *parts_.shared;
  const BlockSeal& seal = shared.seal();
  const uint64_t generation = shared.known().generation();
  const uint64_t bytes = seal.ValueBytes(row.kind->kind);
  const auto job = std::make_shared<Job>(row.kind, positions.size() * bytes);
  const std::span<RemoteStore::Transfer> transfers =
      job->window.Begin(positions.size(), bytes);
  std::string keys;
  std::vector<std::span<std::byte>> blocks;
  for (size_t i = 0; i < positions.size(); ++i) {
    const uint32_t position = positions[i];
    keys.append(row.kind->KeyOf(row.keys, position));
    transfers[i].key = SharedBlocks::KeyOf(row.names[position], position + 1);
    blocks.push_back(transfers[i].value.subspan(seal.bytes()));
  }
  const std::vector<bool> are_copied =
      parts_.copies->CopyOut(*row.kind, keys, blocks, *parts_.counts);
  for (size_t i = 0; i < positions.size(); ++i) {
    if (are_copied[i]) job->keys.emplace_back(row.kind->KeyOf(keys, i));
  }
  if (job->keys.empty()) return;
  job->window.Retain(are_copied);
  job->used = shared.known().period();
  job->deadline = MonotonicNow() + parts_.timeout / 2;
  const bool is_in_time = putters_.Run(
      std::vector<DeadlineThreads::Work>(SharedBlocks::kCopyThreads,
                                         [this, job] { PutParts(*job); }),
      parts_.timeout);
  if (is_in_time) {
    EndStore(*job, generation);
  } else {
    Failed(job->keys.size(), DeadlineThreads::Timeout());
  }
}

void SharedStores::PutParts(Job& job) {
  SharedBlocks& shared = *parts_.shared;
  const SharedBlocks::Put put(&shared, job.kind.get());
  while (job.kind->is_newest && MonotonicNow() < job.deadline) {
    const std::span<RemoteStore::Transfer> part = job.window.TakePart();
    if (part.empty()) return;
    for (const RemoteStore::Transfer& block : part) {
      const size_t number = &block - job.window.blocks().data();
      shared.seal().Seal(job.kind->kind, job.keys[number], block.value);
    }
    shared.store().Put(part, job.used, job.deadline);
    if (!job.kind->is_newest) EraseReplaced(part);
  }
}

// Blocks of a kind that was reset may have reached the store after the others
// were erased.
void SharedStores::EraseReplaced(
    std::span<const RemoteStore::Transfer> blocks) {
  bool are_erased = true;
  for (const RemoteStore::Transfer& block : blocks) {
    are_erased &= parts_.shared->Erase({block.key.ns_digest, block.key.hash});
  }
  if (!are_erased) parts_.shared->EraseKind(blocks.front().key.ns_digest);
}

void SharedStores::EndStore(Job& job, uint64_t generation) {
  if (!job.kind->is_newest) {
    parts_.counts->dropped_blocks += job.keys.size();
    return;
  }
  std::vector<BlockName> stored;
  absl::Status error;
  for (const RemoteStore::Transfer& block : job.window.blocks()) {
    if (block.status.ok()) {
      stored.push_back({block.key.ns_digest, block.key.hash});
    } else {
      error = block.status;
    }
  }
  parts_.shared->known().Add(stored, generation);
  job.kind->stored += stored.size();
  parts_.counts->stored_blocks += stored.size();
  parts_.counts->stored_bytes += stored.size() * job.kind->kind.block_bytes;
  if (error.ok()) {
    breaker_.Succeeded();
  } else {
    Failed(job.keys.size() - stored.size(), error);
  }
}

}  // namespace pando
