#include "service/memory/kept_ledger.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/ledger.h"
#include "base/status_macros.h"
#include "os/crash_count.h"
#include "os/logging/log.h"

namespace pando {
namespace {

// A ledger with so many crashes or failed starts is given up. Its start counts
// them.
constexpr uint32_t kMaxCrashes = 3;
constexpr uint32_t kMaxStarts = 3;

std::span<std::byte> BytesOf(const SharedMemory& memory) {
  return {memory.data(), memory.size()};
}

absl::Status CheckUsable(std::span<std::byte> bytes,
                         const KeptLedgers::Ledger& ledger) {
  if (bytes.size() < sizeof(LedgerStart) || !ledger.is_usable(bytes)) {
    return absl::FailedPreconditionError(
        "their ledger tells of other memory or of another layout, is of "
        "another version, or was not whole");
  }
  const LedgerStart& start = StartOf(bytes);
  if (start.crashes >= kMaxCrashes) {
    return absl::FailedPreconditionError(
        absl::StrCat(start.crashes, " pandods crashed soon after their start"));
  }
  if (start.starts >= kMaxStarts) {
    return absl::FailedPreconditionError(absl::StrCat(
        start.starts, " pandods in a row died before they could serve"));
  }
  return absl::OkStatus();
}

// The keeper may not forget the ledger, and from now on the memory that it
// describes changes without it, so no later pandod may take it over.
void MakeInvalid(std::span<std::byte> bytes) {
  if (bytes.size() >= sizeof(LedgerStart)) StartOf(bytes).magic = 0;
}

}  // namespace

bool IsGivenUp(const LedgerStart& start) {
  return start.crashes >= kMaxCrashes || start.starts >= kMaxStarts;
}

absl::StatusOr<std::span<std::byte>> KeptLedgers::Open(const Ledger& ledger) {
  if (UniqueFd fd = kept_->Take(ledger.name); fd.valid()) {
    absl::StatusOr<SharedMemory> taken = SharedMemory::Adopt(std::move(fd));
    const absl::Status usable =
        taken.ok() ? CheckUsable(BytesOf(*taken), ledger) : taken.status();
    if (usable.ok()) {
      ledgers_.push_back(*std::move(taken));
      CountCrashes();
      return BytesOf(ledgers_.back());
    }
    if (taken.ok()) MakeInvalid(BytesOf(*taken));
    Log(LogLevel::kWarning,
        absl::StrCat("the kept ", ledger.content, " are not used"),
        {{"reason", usable.message()}});
  }
  ASSIGN_OR_RETURN(SharedMemory made,
                   SharedMemory::Create("pando-ledger", ledger.bytes,
                                        SharedMemory::Peers::kMayWrite));
  kept_->Keep(ledger.name, made.fd());
  ledgers_.push_back(std::move(made));
  CountCrashes();
  return BytesOf(ledgers_.back());
}

void KeptLedgers::Spoil(const std::string& name) {
  UniqueFd fd = kept_->Look(name);
  if (!fd.valid()) return;
  const absl::StatusOr<SharedMemory> taken = SharedMemory::Adopt(std::move(fd));
  if (taken.ok()) MakeInvalid(BytesOf(*taken));
}

KeptLedgers::~KeptLedgers() {
  CountCrashesIn({});
  Serves();
}

void KeptLedgers::Serves() {
  for (const SharedMemory& ledger : ledgers_) {
    StartOf(BytesOf(ledger)).starts = 0;
  }
}

void KeptLedgers::IsSteady() {
  CountCrashesIn({});
  for (const SharedMemory& ledger : ledgers_) {
    StartOf(BytesOf(ledger)).crashes = 0;
  }
}

void KeptLedgers::CountCrashes() const {
  std::vector<uint32_t*> counts;
  for (const SharedMemory& ledger : ledgers_) {
    counts.push_back(&StartOf(BytesOf(ledger)).crashes);
  }
  CountCrashesIn(counts);
}

}  // namespace pando
