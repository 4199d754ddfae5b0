#include "tiers/blocks/block_tier.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "os/logging/log.h"
#include "os/random_id.h"
#include "tiers/blocks/wanted_blocks.h"

namespace pando {
namespace {

SessionId OpenTierSession(PrefixCache* cache) {
  const SessionId session(RandomId());
  cache->OpenSession(session, "pandod-block-tier", /*is_internal=*/true);
  return session;
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
      kept_(config.max_bytes),
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

// Its threads end after this, and are refused what they still ask for.
BlockTier::~BlockTier() { cache_->CloseSession(session_); }

void BlockTier::Opened(std::span<const BlockKind> kinds) {
  for (const BlockKind& kind : kinds) {
    if (kind.number != KindNumber()) kept_.Know(kind);
  }
}

void BlockTier::Renewed(std::span<const BlockKind> kinds) {
  for (const BlockKind& kind : kinds) {
    if (kept_.Find(kind.number) != nullptr) continue;
    BlockIndex::Garbage garbage = kept_.Renew(kind);
    stores_.Erase(TierKindOf(kind).name(), std::move(garbage));
  }
}

bool BlockTier::AreRenewed(Resumable& call) {
  const uint64_t erasures = stores_.erasures();
  if (stores_.WasErased(erasures)) return true;
  waits_[&call] = erasures;
  // It may have been done meanwhile, before this call waited.
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

void BlockTier::Acquired(std::span<const BlockKeys> keys,
                         std::span<const BlockPlace> places) {
  std::vector<KeysOfKind> used;
  for (const BlockKeys& k : keys) {
    const std::shared_ptr<KnownKind> kind = kept_.Find(k.kind);
    if (kind == nullptr) return;
    const size_t key_bytes = kind->kind.key_bytes;
    const size_t count = k.keys.size() / key_bytes;
    KeysOfKind found = {.kind = k.kind, .keys = {}};
    for (size_t i = 0; i < count; ++i) {
      if (!IsPlace(places[i])) continue;
      found.keys.append(k.keys.substr(i * key_bytes, key_bytes));
    }
    if (!found.keys.empty()) used.push_back(std::move(found));
    places = places.subspan(count);
  }
  if (!used.empty()) stores_.Use(std::move(used), /*stores=*/true);
}

uint32_t BlockTier::Look(SessionId session, std::span<const BlockKeys> keys,
                         std::span<BlockPlace> places, bool loads) {
  uint32_t found = 0;
  for (const BlockKeys& k : keys) {
    const std::shared_ptr<KnownKind> kind = kept_.Find(k.kind);
    if (kind == nullptr) return found;
    const size_t count = k.keys.size() / kind->kind.key_bytes;
    const std::span<BlockPlace> answers = places.first(count);
    places = places.subspan(count);
    if (std::ranges::all_of(answers, IsPlace)) continue;
    const std::vector<bool> kept = kept_.Have(*kind, k.keys);
    for (size_t i = 0; i < count; ++i) {
      const bool is_missing =
          answers[i] == kMissingBlock || answers[i] == kNotLookedAt;
      found += is_missing && kept[i] ? 1 : 0;
    }
    if (!loads) continue;
    const std::vector<uint32_t> wanted = WantedBlocks(k, answers, kept);
    const std::vector<bool> are_loading =
        loads_.Begin(session, kind, k, wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      BlockPlace& answer = answers[wanted[i]];
      if (are_loading[i] && answer == kMissingBlock) answer = kPendingBlock;
    }
  }
  return found;
}

bool BlockTier::Has(KindNumber number, std::string_view key) const {
  const std::shared_ptr<KnownKind> kind = kept_.Find(number);
  if (kind == nullptr || key.size() != kind->kind.key_bytes) return false;
  return kept_.Have(*kind, key).front();
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
