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
// A ledger with so many crashes or failed starts is given up. Its header counts
// them.
constexpr uint32_t kMaxCrashes = 3;
constexpr uint32_t kMaxStarts = 3;

std::span<std::byte> BytesOf(const SharedMemory& memory) {
  return {memory.data(), memory.size()};
}

absl::Status CheckUsable(const SharedMemory& memory, BlockOptions blocks) {
  blocks.ledger = BytesOf(memory);
  if (!BlockLedger::IsOf(blocks)) {
    return absl::FailedPreconditionError(
        "it tells of other memory or other extents, is of another version, or "
        "was not whole");
  }
  const LedgerHeader& header = HeaderOf(blocks.ledger);
  if (header.crashes >= kMaxCrashes) {
    return absl::FailedPreconditionError(absl::StrCat(
        header.crashes, " pandods crashed soon after their start"));
  }
  if (header.starts >= kMaxStarts) {
    return absl::FailedPreconditionError(absl::StrCat(
        header.starts, " pandods in a row died before they could serve"));
  }
  return absl::OkStatus();
}

// Makes the ledger invalid. The keeper may not forget it, and from now on the
// block memory changes without it, so no later pandod may take it over.
void Spoil(const SharedMemory& memory) {
  if (memory.size() >= sizeof(LedgerHeader)) {
    HeaderOf(BytesOf(memory)).magic = 0;
  }
}

}  // namespace

absl::StatusOr<SharedMemory> KeptLedger(const BlockOptions& blocks,
                                        KeptDescriptors& kept) {
  if (UniqueFd fd = kept.Take(kLedger); fd.valid()) {
    absl::StatusOr<SharedMemory> taken = SharedMemory::Adopt(std::move(fd));
    const absl::Status usable =
        taken.ok() ? CheckUsable(*taken, blocks) : taken.status();
    if (usable.ok()) return taken;
    if (taken.ok()) Spoil(*taken);
    Log(LogLevel::kWarning, "the kept blocks are not used",
        {{"reason", usable.message()}});
  }
  ASSIGN_OR_RETURN(
      SharedMemory made,
      SharedMemory::Create("pando-ledger", BlockLedger::BytesFor(blocks),
                           SharedMemory::Peers::kMayWrite));
  kept.Keep(kLedger, made.fd());
  return made;
}

}  // namespace pando
