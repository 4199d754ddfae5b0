#include "tiers/blocks/block_loads.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "os/logging/log.h"
#include "os/monotonic_clock.h"

namespace pando {
namespace {

// At most 1/kMemoryParts of the memory waits to be loaded.
constexpr uint64_t kMemoryParts = 4;
// So many bytes are read and then published together, unless one block is
// larger.
constexpr size_t kLoadedAtOnce = size_t{16} << 20;
constexpr size_t kMostLoadedAtOnce = 256;
constexpr absl::Duration kRefusedFor = absl::Seconds(1);
// When so many blocks fail within kRefusedFor, the source is taken to fail, and
// all blocks are refused.
constexpr size_t kMostFailed = 16;

}  // namespace

BlockLoads::BlockLoads(const Parts& parts) : parts_(parts) {
  // The set has its full size from the start, so that it never grows while a
  // call waits.
  loading_.reserve(kMostLoading);
  thread_ = std::thread([this] { Run(); });
}

BlockLoads::~BlockLoads() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  thread_.join();
}

std::optional<std::vector<bool>> BlockLoads::Begin(
    SessionId asked_by, const std::shared_ptr<KnownKind>& kind,
    const BlockKeys& keys, std::span<const uint32_t> wanted) {
  std::vector<bool> are_loading(wanted.size());
  if (wanted.empty()) return are_loading;
  const size_t key_bytes = kind->kind.key_bytes;
  const uint32_t first = wanted.front();
  const size_t bytes_of_keys = (wanted.back() + 1 - first) * key_bytes;
  absl::StatusOr<KeptBytes> account = parts_.cache->Keep(
      asked_by, sizeof(Load) + key_bytes + bytes_of_keys +
                    wanted.size() * (sizeof(Load::Block) + sizeof(BlockName)));
  if (!account.ok()) return std::nullopt;
  Load load = {
      .kind = kind,
      .keys = std::string(keys.keys.substr(first * key_bytes, bytes_of_keys)),
      .before = std::string(first > 0 ? kind->KeyOf(keys.keys, first - 1)
                                      : keys.before),
      .blocks = {},
      .account = *std::move(account)};
  std::vector<BlockName> names;
  for (uint32_t index : wanted) {
    names.push_back(kind->NameOf(load.key(index - first)));
  }
  load.blocks.reserve(wanted.size());
  absl::MutexLock hold(&mutex_);
  const bool may_begin = MayLoadNow(*kind);
  if (MonotonicNow() >= failed_until_) failed_.clear();
  const uint64_t bytes = kind->kind.block_bytes;
  for (size_t i = 0; i < wanted.size(); ++i) {
    are_loading[i] = loading_.contains(names[i]);
    if (are_loading[i] || !may_begin || failed_.contains(names[i])) continue;
    if (!HasRoom(bytes)) continue;
    loading_.insert(names[i]);
    loading_bytes_ += bytes;
    load.blocks.push_back({wanted[i] - first, names[i]});
    are_loading[i] = true;
  }
  if (!load.blocks.empty()) queue_.push_back(std::move(load));
  return are_loading;
}

std::vector<bool> BlockLoads::AreLoading(
    std::span<const BlockName> names) const {
  std::vector<bool> are_loading;
  absl::MutexLock hold(&mutex_);
  for (const BlockName& name : names) {
    are_loading.push_back(loading_.contains(name));
  }
  return are_loading;
}

bool BlockLoads::HasRoom(uint64_t block_bytes) const {
  return loading_.size() < kMostLoading &&
         loading_bytes_ + block_bytes <= parts_.memory_bytes / kMemoryParts;
}

bool BlockLoads::MayLoadNow(const KnownKind& kind) const {
  const absl::Time now = MonotonicNow();
  return !is_draining_ && !is_stopped_ && now >= refused_until_ &&
         absl::ToUnixMillis(now) >= kind.full_until_ms;
}

void BlockLoads::BeginDrain() {
  absl::MutexLock hold(&mutex_);
  is_draining_ = true;
}

void BlockLoads::Run() {
  pthread_setname_np(pthread_self(), "block-load");
  while (true) {
    Load load;
    {
      absl::MutexLock hold(&mutex_);
      mutex_.Await(absl::Condition(this, &BlockLoads::HasWork));
      if (is_stopped_) return;
      load = std::move(queue_.front());
      queue_.pop_front();
    }
    const size_t most = std::clamp<size_t>(
        kLoadedAtOnce / load.kind->kind.block_bytes, 1, kMostLoadedAtOnce);
    for (size_t i = 0; i < load.blocks.size(); i += most) {
      const auto some = Blocks(load.blocks)
                            .subspan(i, std::min(most, load.blocks.size() - i));
      if (MayLoad(*load.kind)) LoadSome(load, some);
      End(load, some);
    }
  }
}

void BlockLoads::RefuseForAWhile() {
  absl::MutexLock hold(&mutex_);
  refused_until_ = MonotonicNow() + kRefusedFor;
}

void BlockLoads::RefuseForAWhile(const BlockName& name) {
  absl::MutexLock hold(&mutex_);
  const absl::Time now = MonotonicNow();
  if (now >= failed_until_) failed_.clear();
  if (failed_.empty()) failed_until_ = now + kRefusedFor;
  failed_.insert(name);
  if (failed_.size() >= kMostFailed) refused_until_ = failed_until_;
}

void BlockLoads::End(const Load& load, Blocks blocks) {
  absl::MutexLock hold(&mutex_);
  for (const Load::Block& block : blocks) loading_.erase(block.name);
  loading_bytes_ -= blocks.size() * load.kind->kind.block_bytes;
}

void BlockLoads::LoadSome(const Load& load, Blocks blocks) {
  const std::vector<Read> missing = Missing(load, blocks);
  std::vector<Read> read;
  const size_t most = parts_.source->most_at_once();
  for (size_t i = 0; i < missing.size() && MayLoad(*load.kind); i += most) {
    const std::span<const Read> some =
        std::span(missing).subspan(i, std::min(most, missing.size() - i));
    std::vector<BlockRead> asked;
    for (const Read& each : some) {
      const std::string_view key = load.key(each.index);
      asked.push_back({key, load.kind->NameOf(key), each.value, {}});
    }
    parts_.source->Read(load.kind, asked);
    for (size_t j = 0; j < some.size(); ++j) {
      if (asked[j].status.ok()) {
        read.push_back(some[j]);
      } else if (!absl::IsNotFound(asked[j].status)) {
        RefuseForAWhile(asked[j].name);
      }
    }
  }
  if (!read.empty()) Publish(load, read);
}

std::vector<BlockLoads::Read> BlockLoads::Missing(const Load& load,
                                                  Blocks blocks) {
  std::string keys;
  for (const Load::Block& block : blocks) keys.append(load.key(block.index));
  const absl::StatusOr<std::vector<bool>> are_missing =
      parts_.copies->AreMissing(*load.kind, keys);
  if (!are_missing.ok()) {
    if (load.kind->is_newest) RefuseForAWhile();
    return {};
  }
  const uint64_t bytes = parts_.source->ValueBytes(load.kind->kind);
  buffer_.resize(blocks.size() * bytes);
  std::vector<Read> missing;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!(*are_missing)[i]) continue;
    missing.push_back(
        {blocks[i].index, std::span(buffer_).subspan(i * bytes, bytes)});
  }
  return missing;
}

// Blocks that follow each other in the prompt are reserved as one row of keys.
void BlockLoads::Publish(const Load& load, std::span<const Read> reads) {
  const TierKind& kind = load.kind->kind;
  std::vector<BlockKeys> rows;
  for (size_t i = 0; i < reads.size(); ++i) {
    const uint32_t index = reads[i].index;
    const std::string_view key = load.key(index);
    if (i > 0 && index == reads[i - 1].index + 1) {
      std::string_view& keys = rows.back().keys;
      keys = {keys.data(), keys.size() + kind.key_bytes};
    } else {
      rows.push_back(
          {.kind = kind.number, .keys = key, .before = load.before_of(index)});
    }
  }
  const absl::StatusOr<BlockCopies::Reserved> reserved =
      parts_.copies->Reserve(rows);
  if (!reserved.ok()) {
    if (load.kind->is_newest) RefuseForAWhile();
    return;
  }
  std::vector<uint32_t> written;
  for (uint32_t i = 0; i < reserved->places.size(); ++i) {
    const BlockPlace place = reserved->places[i];
    if (place == kNoRoomForBlock) {
      // Another kind may have room, if a quota is the reason.
      load.kind->full_until_ms =
          absl::ToUnixMillis(MonotonicNow() + kRefusedFor);
    }
    if (!IsPlace(place)) continue;
    const absl::Status copied =
        parts_.copies->CopyIn(reads[i].value.last(kind.block_bytes), place);
    if (copied.ok()) {
      written.push_back(i);
      continue;
    }
    ++parts_.counts->failed_reads;
    RefuseForAWhile();
    Log(LogLevel::kError, "a stored block cannot be copied to the memory",
        {{"error", copied.message()}});
  }
  // They are counted first, so that no figures lack a block that is found.
  load.kind->loaded += written.size();
  parts_.counts->loaded_blocks += written.size();
  parts_.counts->loaded_bytes += written.size() * kind.block_bytes;
  parts_.copies->Publish(reserved->reservation, written);
}

}  // namespace pando
