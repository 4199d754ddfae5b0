#include "service/memory/kept_ledger.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/blocks/block_ledger.h"
#include "os/logging/log.h"

namespace pando {
namespace {

constexpr char kLedger[] = "block-ledger";
// In a row.
constexpr uint32_t kMaxCrashes = 3;
constexpr uint32_t kMaxStarts = 3;

std::span<std::byte> BytesOf(const SharedMemory& memory) {
  return {memory.data(), memory.size()};
}

absl::StatusOr<SharedMemory> TakeOver(UniqueFd fd, BlockOptions blocks) {
  ASSIGN_OR_RETURN(SharedMemory memory, SharedMemory::Adopt(std::move(fd)));
  blocks.ledger = BytesOf(memory);
  if (!BlockLedger::IsOf(blocks)) {
    return absl::FailedPreconditionError(
        "it tells of other memory, or is of another version");
  }
  const LedgerHeader& header = HeaderOf(blocks.ledger);
  if (header.crashes >= kMaxCrashes) {
    return absl::FailedPreconditionError(absl::StrCat(
        header.crashes, " pandods in a row crashed soon after their start"));
  }
  if (header.starts >= kMaxStarts) {
    return absl::FailedPreconditionError(absl::StrCat(
        header.starts, " pandods in a row ended before they could serve"));
  }
  return memory;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemory>> KeptLedger(
    const BlockOptions& blocks, KeptDescriptors& kept) {
  if (!kept.has_keeper()) return nullptr;
  if (UniqueFd fd = kept.Take(kLedger); fd.valid()) {
    absl::StatusOr<SharedMemory> taken = TakeOver(std::move(fd), blocks);
    if (taken.ok()) return std::make_unique<SharedMemory>(*std::move(taken));
    Log(LogLevel::kWarning, "the kept blocks are not used",
        {{"reason", taken.status().message()}});
  }
  ASSIGN_OR_RETURN(
      SharedMemory made,
      SharedMemory::Create("pando-ledger", BlockLedger::BytesFor(blocks),
                           SharedMemory::Peers::kMayWrite));
  kept.Keep(kLedger, made.fd());
  return std::make_unique<SharedMemory>(std::move(made));
}

}  // namespace pando
