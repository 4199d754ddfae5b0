#include "tiers/page_copiers.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tiers/copying/mapped_pages.h"
#include "tiers/copying/moved_pages.h"

namespace pando {
namespace {

uint64_t BlockBytes(const KvPool& pool) {
  return PageBytes(pool.layout()) * pool.shards().size();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageCopiers>> PageCopiers::Start(
    const Config& config, const KvPool* pool) {
  auto copiers = absl::WrapUnique(new PageCopiers(config, pool));
  if (!config.mover_socket.empty()) {
    RETURN_IF_ERROR(copiers->StartMovers(config));
  }
  return copiers;
}

absl::Status PageCopiers::StartMovers(const Config& config) {
  uint64_t host_bytes = 0;
  if (host_tier_bytes_ > 0) {
    ASSIGN_OR_RETURN(host_bytes,
                     HostStore::BytesOf(host_tier_bytes_, BlockBytes(*pool_)));
  }
  ASSIGN_OR_RETURN(memory_,
                   TransferMemory::Make(BlockBytes(*pool_), host_bytes));
  absl::StatusOr<std::unique_ptr<PageMovers>> movers =
      PageMovers::Start({.socket = config.mover_socket,
                         .kept = config.kept,
                         .times = {.quarantine = config.quarantine}},
                        pool_, memory_.get());
  if (!movers.ok()) {
    return absl::Status(
        movers.status().code(),
        absl::StrCat("mover-socket: ", movers.status().message()));
  }
  movers_ = *std::move(movers);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PageBlocks>> PageCopiers::MakeBlocks() const {
  if (movers_ == nullptr) return MappedPages::Map(*pool_);
  return std::make_unique<MovedPages>(*pool_, memory_.get(), movers_.get());
}

absl::StatusOr<std::unique_ptr<HostStore>> PageCopiers::MakeHostStore() const {
  if (movers_ == nullptr) {
    return HostStore::Make(host_tier_bytes_, BlockBytes(*pool_));
  }
  return HostStore::MakeIn(memory_->host_tier(), BlockBytes(*pool_));
}

}  // namespace pando
