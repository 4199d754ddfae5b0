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
    Config config, const Parts& parts) {
  ASSIGN_OR_RETURN(UniqueFd memory, parts.memory->Export());
  std::unique_ptr<BlockFiles> files;
  if (!config.disk.folder.empty()) {
    ASSIGN_OR_RETURN(files, BlockFiles::Open(config.disk));
    Log(LogLevel::kInfo, "disk tier of blocks opened",
        {{"folder", config.disk.folder}, {"bytes", config.disk.max_bytes}});
  }
  return absl::WrapUnique(new BlockTier(std::move(config), parts,
                                        std::move(memory), std::move(files)));
}

BlockTier::BlockTier(Config config, const Parts& parts, UniqueFd memory,
                     std::unique_ptr<BlockFiles> files)
    : cache_(parts.cache),
      stores_at_once_(config.stores_at_once),
      session_(OpenTierSession(parts.cache)),
      copies_(parts.blocks, session_, std::move(memory)),
      kept_(config.disk.max_bytes, MostBlocks(parts.memory->bytes())),
      renewed_(parts.actions->AddWakeup([this] { ResumeRenewed(); })) {
  const uint64_t memory_bytes = parts.memory->bytes();
  if (files != nullptr) {
    disk_ = std::make_unique<DiskBlockTier>(
        std::move(files),
        DiskBlockTier::Parts{.cache = parts.cache,
                             .copies = &copies_,
                             .kept = &kept_,
                             .memory_bytes = memory_bytes},
        [this] { renewed_->Request(); });
  } else {
    kept_.EndStock();
  }
  if (config.shared.has_value()) {
    shared_ = std::make_unique<SharedBlockTier>(
        *std::move(config.shared), config.timeouts,
        SharedBlockTier::Parts{.cache = parts.cache,
                               .copies = &copies_,
                               .kinds = &kept_,
                               .memory_bytes = memory_bytes});
  }
}

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
    if (!bytes.has_value()) continue;
    const uint64_t name = TierKindOf(kind).name();
    if (disk_ != nullptr) disk_->stores().Erase(name, *bytes);
    if (shared_ != nullptr) shared_->EraseKind(name);
  }
}

bool BlockTier::AreRenewed(Resumable& call) {
  if (disk_ == nullptr) return true;
  const BlockStores& stores = disk_->stores();
  const uint64_t erasures = stores.erasures();
  if (stores.WasErased(erasures)) return true;
  waits_[&call] = erasures;
  // The erasures may have been done after the check above, before this call was
  // in `waits_`.
  if (stores.WasErased(erasures)) renewed_->Request();
  return false;
}

void BlockTier::ResumeRenewed() {
  std::vector<Resumable*> done;
  for (const auto& [call, erasures] : waits_) {
    if (disk_->stores().WasErased(erasures)) done.push_back(call);
  }
  for (Resumable* const call : done) {
    if (waits_.erase(call) > 0) call->Resume();
  }
}

void BlockTier::Published(std::vector<KeysOfKind> keys) {
  if (!stores_at_once_ || keys.empty()) return;
  const StoreNote note = {
      .keys = std::make_shared<std::vector<KeysOfKind>>(std::move(keys))};
  if (shared_ != nullptr) shared_->Note(note);
  if (disk_ != nullptr) disk_->stores().Note(note);
}

bool BlockTier::Has(KindNumber number, std::string_view key) const {
  const std::shared_ptr<KnownKind> kind = kept_.Find(number);
  if (kind == nullptr || key.size() != kind->kind.key_bytes) return false;
  const BlockName name = kind->NameOf(key);
  return kept_.Have(*kind, {&name, 1}).front();
}

void BlockTier::BeginDrain() {
  if (disk_ != nullptr) disk_->BeginDrain();
  if (shared_ != nullptr) shared_->BeginDrain();
}

BlockTiersFigures BlockTier::figures() const {
  BlockTiersFigures figures;
  if (disk_ != nullptr) figures.disk = disk_->figures();
  if (shared_ != nullptr) figures.shared = shared_->figures();
  for (const auto& kind : kept_.kinds()) {
    figures.kinds.push_back({.kind = kind->kind.number,
                             .stored = kind->stored,
                             .loaded = kind->loaded});
  }
  return figures;
}

}  // namespace pando
