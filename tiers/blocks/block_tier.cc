#include "tiers/blocks/block_tier.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "os/logging/log.h"
#include "os/random_id.h"

namespace pando {
namespace {

SessionId OpenTierSession(PrefixCache* cache) {
  const SessionId session(RandomId());
  cache->OpenSession(session, "pandod-block-tier", /*is_internal=*/true);
  return session;
}

// The index takes at most 1/kMemoryOfIndex of the size of the block memory, but
// it may always take kLeastIndexBytes.
constexpr uint64_t kMemoryOfIndex = 32;
constexpr uint64_t kLeastIndexBytes = uint64_t{64} << 20;

uint64_t MostBlocks(uint64_t memory_bytes) {
  return std::max(memory_bytes / kMemoryOfIndex, kLeastIndexBytes) /
         BlockIndex::kBytesOfBlock;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlockTier>> BlockTier::Start(
    const Config& config, const Parts& parts) {
  ASSIGN_OR_RETURN(UniqueFd memory, parts.memory->Export());
  ASSIGN_OR_RETURN(std::unique_ptr<BlockFiles> files,
                   BlockFiles::Open({.folder = config.folder,
                                     .max_bytes = config.max_bytes}));
  Log(LogLevel::kInfo, "disk tier of blocks opened",
      {{"folder", config.folder}, {"bytes", config.max_bytes}});
  return absl::WrapUnique(
      new BlockTier(config, parts, std::move(memory), std::move(files)));
}

BlockTier::BlockTier(const Config& config, const Parts& parts, UniqueFd memory,
                     std::unique_ptr<BlockFiles> files)
    : cache_(parts.cache),
      stores_at_once_(config.stores_at_once),
      session_(OpenTierSession(parts.cache)),
      bytes_(std::move(memory)),
      kept_(config.max_bytes, MostBlocks(parts.memory->bytes())),
      files_(std::move(files)),
      renewed_(parts.actions->AddWakeup([this] { ResumeRenewed(); })),
      stores_({.blocks = parts.blocks,
               .session = session_,
               .bytes = &bytes_,
               .kept = &kept_,
               .files = files_.get(),
               .counts = &counts_},
              [this] { renewed_->Request(); }),
      loads_({.cache = parts.cache,
              .blocks = parts.blocks,
              .session = session_,
              .bytes = &bytes_,
              .kept = &kept_,
              .files = files_.get(),
              .counts = &counts_,
              .memory_bytes = parts.memory->bytes()}) {}

// The threads end after this. What they still ask of the cache is refused.
BlockTier::~BlockTier() { cache_->CloseSession(session_); }

void BlockTier::Opened(std::span<const BlockKind> kinds) {
  for (const BlockKind& kind : kinds) {
    if (kind.number != KindNumber()) kept_.Know(kind);
  }
}

void BlockTier::Renewed(std::span<const BlockKind> kinds) {
  for (const BlockKind& kind : kinds) {
    const std::optional<uint64_t> bytes = kept_.Renew(kind);
    if (bytes.has_value()) stores_.Erase(TierKindOf(kind).name(), *bytes);
  }
}

bool BlockTier::AreRenewed(Resumable& call) {
  const uint64_t erasures = stores_.erasures();
  if (stores_.WasErased(erasures)) return true;
  waits_[&call] = erasures;
  // The erasures may have been done after the check above, before this call was
  // in `waits_`.
  if (stores_.WasErased(erasures)) renewed_->Request();
  return false;
}

void BlockTier::ResumeRenewed() {
  std::vector<Resumable*> done;
  for (const auto& [call, erasures] : waits_) {
    if (stores_.WasErased(erasures)) done.push_back(call);
  }
  for (Resumable* const call : done) {
    if (waits_.erase(call) > 0) call->Resume();
  }
}

void BlockTier::Published(std::vector<KeysOfKind> keys) {
  if (stores_at_once_ && !keys.empty()) stores_.Store(std::move(keys));
}

bool BlockTier::Has(KindNumber number, std::string_view key) const {
  const std::shared_ptr<KnownKind> kind = kept_.Find(number);
  if (kind == nullptr || key.size() != kind->kind.key_bytes) return false;
  const BlockName name = kind->NameOf(key);
  return kept_.Have(*kind, {&name, 1}).front();
}

void BlockTier::BeginDrain() {
  stores_.BeginDrain();
  loads_.BeginDrain();
}

BlockTierFigures BlockTier::figures() const {
  const KeptBlocks::Totals totals = kept_.totals();
  BlockTierFigures figures = {.capacity_bytes = totals.max_bytes,
                              .held_bytes = totals.bytes,
                              .held_blocks = totals.blocks,
                              .index_bytes = totals.index_bytes,
                              .stored_blocks = counts_.stored_blocks,
                              .stored_bytes = counts_.stored_bytes,
                              .loaded_blocks = counts_.loaded_blocks,
                              .loaded_bytes = counts_.loaded_bytes,
                              .dropped_blocks = counts_.dropped_blocks,
                              .failed_reads = counts_.failed_reads,
                              .failed_writes = counts_.failed_writes,
                              .damaged_blocks = counts_.damaged_blocks,
                              .kinds = {}};
  for (const auto& kind : kept_.kinds()) {
    figures.kinds.push_back({.kind = kind->kind.number,
                             .stored = kind->stored,
                             .loaded = kind->loaded});
  }
  return figures;
}

}  // namespace pando
