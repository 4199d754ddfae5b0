#include "core/block_calls/block_reports.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

constexpr uint32_t kStepHolds = 64;
// For each kind, at most 1 KiB of names is copied.
constexpr size_t kStepKinds = 64;

KindStats StatsOf(const BlockTable& blocks, const Kind& kind) {
  const uint64_t slots = uint64_t{kind.slots} * kind.extents.size();
  uint64_t used = 0;
  for (uint32_t extent : kind.extents) {
    used += blocks.memory().extent(extent).blocks;
  }
  return {.kind = kind.info,
          .is_newest = kind.is_newest,
          .open_sessions = kind.open_sessions,
          .extents = static_cast<uint32_t>(kind.extents.size()),
          .block_bytes = kind.block_bytes(),
          .ready_blocks = kind.ready,
          .locked_blocks = kind.locked,
          .written_blocks = kind.written,
          .free_blocks = slots - used,
          .coldest_age = blocks.ColdestAge(kind).value_or(0),
          .counters = kind.counters};
}

}  // namespace

bool BlockCensus::Step(CacheParts& parts) {
  if (!std::exchange(has_totals_, true)) TakeTotals(parts);
  return parts.blocks.kinds().ForEachAfter(
      last_, kStepKinds, [&](const Kind& kind) {
        stats_.kinds.push_back(StatsOf(parts.blocks, kind));
        last_ = kind.info.number;
      });
}

void BlockCensus::TakeTotals(const CacheParts& parts) {
  const BlockMemory& memory = parts.blocks.memory();
  const Quarantine::BlockCounts quarantined =
      parts.holdings.quarantine().block_counts();
  stats_ = {.memory_bytes = memory.memory_bytes(),
            .extent_bytes = memory.extent_bytes(),
            .extents = memory.extent_count(),
            .free_extents = memory.free_extent_count(),
            .locks = parts.block_holds.lock_count(),
            .reservations = parts.block_holds.reservation_count(),
            .quarantined_locks = quarantined.locked,
            .quarantined_blocks = quarantined.reserved,
            .index_bytes = parts.blocks.index_bytes(),
            .kinds = {},
            .ended_kinds = parts.blocks.kinds().ended_counters(),
            .recoveries = parts.blocks.recoveries(),
            .quotas = parts.blocks.quotas().Stats()};
  stats_.kinds.reserve(parts.blocks.kinds().size());
}

bool BlockInquiry::Step(CacheParts& parts) {
  if (!has_looked_) {
    result_ = Look(parts);
    has_looked_ = true;
    if (!result_.ok() || (result_->fate != BlockFate::kPending &&
                          result_->fate != BlockFate::kOverdue)) {
      return true;
    }
  }
  return FindWriter(parts);
}

absl::StatusOr<BlockExplanation> BlockInquiry::Look(
    const CacheParts& parts) const {
  const BlockTable& blocks = parts.blocks;
  const Kind* const kind = blocks.kinds().Find(kind_);
  if (kind == nullptr || kind->has_ended()) {
    return MakeError(Reason::kKindUnknown, Subject::kKinds,
                     absl::StrCat("there is no kind ", kind_.value()));
  }
  if (key_.size() != kind->key_bytes()) {
    return MakeError(
        Reason::kInvalidField, Subject::kBlockKeys,
        absl::StrCat("are of ", key_.size(), " bytes; a key of this kind has ",
                     kind->key_bytes()));
  }
  BlockExplanation explanation;
  const BlockNumber block = blocks.Find(*kind, key_);
  if (block == kNoBlock) {
    const auto ghost = blocks.FindEvicted(*kind, key_);
    if (!ghost.has_value()) return explanation;
    explanation.fate = BlockFate::kEvicted;
    explanation.age = blocks.time() - ghost->evicted_at;
    explanation.eviction = ghost->reason;
    return explanation;
  }
  const BlockRecord& record = blocks.At(block);
  explanation.place = blocks.memory().PlaceOf(block);
  explanation.locks = static_cast<uint32_t>(record.locks);
  explanation.followers = static_cast<uint32_t>(record.followers);
  if (record.block_state() == BlockState::kReady) {
    explanation.fate = BlockFate::kReady;
    return explanation;
  }
  explanation.fate =
      blocks.IsOverdue(record) ? BlockFate::kOverdue : BlockFate::kPending;
  explanation.age = blocks.time() - blocks.ReservedAt(record);
  return explanation;
}

bool BlockInquiry::FindWriter(const CacheParts& parts) {
  const uint32_t cells = parts.block_holds.cells();
  const uint32_t end = std::min(cells, next_ + kStepHolds);
  parts.block_holds.ForEach(next_, end, [&](const BlockHold& hold) {
    if (!hold.name.is_reservation) return;
    const auto& places = hold.places;
    if (std::find(places.begin(), places.end(), result_->place) ==
        places.end()) {
      return;
    }
    result_->writer = hold.owner->number;
    const Session* const session = parts.sessions.Find(hold.owner->number);
    if (session != nullptr) result_->client_name = session->client_name;
  });
  next_ = end;
  return next_ == cells || result_->writer != SessionNumber();
}

}  // namespace pando
