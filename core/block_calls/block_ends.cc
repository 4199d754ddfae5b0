#include "core/block_calls/block_ends.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

// Blocks whose places in the index are fetched before they are looked at.
constexpr size_t kFetchedAhead = 8;

}  // namespace

bool BlockCompletion::Step(CacheParts& parts) {
  result_ = TryStep(parts);
  return true;
}

absl::StatusOr<uint32_t> BlockCompletion::TryStep(CacheParts& parts) const {
  ASSIGN_OR_RETURN(Session* const session, GetBlockSession(parts, session_id_));
  if (indices_.size() > kMaxBlockKeys) {
    return MakeError(Reason::kInvalidField, Subject::kIndices,
                     absl::StrCat("are ", indices_.size(), "; the limit is ",
                                  kMaxBlockKeys));
  }
  BlockHold* const hold = parts.block_holds.Find(
      *session->blocks, {.is_reservation = true, .id = reservation_.value()});
  if (hold == nullptr || !hold->is_whole()) {
    return static_cast<uint32_t>(std::max<size_t>(indices_.size(), 1));
  }
  const size_t count = hold->places.size();
  for (uint32_t index : indices_) {
    if (index < count) continue;
    return MakeError(
        Reason::kInvalidField, Subject::kIndices,
        absl::StrCat("name key ", index, "; the reservation is one of ", count,
                     " keys"));
  }
  if (completed_ != nullptr) {
    for (uint32_t index : indices_) {
      NoteKey(parts.blocks.memory(), hold->places[index]);
    }
    for (size_t i = 0; i < (indices_.empty() ? count : 0); ++i) {
      NoteKey(parts.blocks.memory(), hold->places[i]);
    }
  }
  parts.blocks.NextUse();
  uint32_t unknown = 0;
  const auto complete = [&](size_t index) {
    return outcome_ == Outcome::kPublished
               ? parts.block_holds.Publish(*hold, index)
               : parts.block_holds.Discard(*hold, index);
  };
  // Without indices from the end, so that few become leaves.
  const size_t ends = indices_.empty() ? count : indices_.size();
  const auto index_of = [&](size_t n) {
    return indices_.empty() ? count - 1 - n : indices_[n];
  };
  for (size_t n = 0; n < ends; ++n) {
    if (n + kFetchedAhead < ends) {
      parts.block_holds.PrefetchEnd(*hold, index_of(n + kFetchedAhead),
                                    outcome_ == Outcome::kPublished);
    }
    if (!complete(index_of(n)) && !indices_.empty()) ++unknown;
  }
  if (hold->left == 0) parts.block_holds.Erase(*hold);
  parts.sessions.CountBlockBytes(*session);
  return unknown;
}

void BlockCompletion::NoteKey(const BlockMemory& memory,
                              BlockPlace place) const {
  if (!IsPlace(place)) return;
  const BlockNumber block = memory.NumberOf(place);
  const KindNumber kind = memory.ExtentOf(block).kind->info.number;
  if (completed_->empty() || completed_->back().kind != kind) {
    completed_->push_back({.kind = kind, .keys = {}});
  }
  completed_->back().keys.append(memory.KeyOf(block));
}

BlockHold::Name BlockRelease::name(size_t i) const {
  if (!locks_.empty())
    return {.is_reservation = false, .id = locks_[i].value()};
  return {.is_reservation = true, .id = reservations_[i].value()};
}

bool BlockRelease::Step(CacheParts& parts) {
  const absl::StatusOr<Session*> session = GetBlockSession(parts, session_id_);
  if (!session.ok()) {
    unknown_ = session.status();
    return true;
  }
  uint32_t work = kStepKeys;
  while (next_ < size() && work > 0) {
    --work;
    BlockHold* const hold =
        parts.block_holds.Find(*(*session)->blocks, name(next_));
    if (hold == nullptr) {
      ++*unknown_;
    } else if (!parts.block_holds.Release(*hold, work)) {
      break;
    }
    ++next_;
  }
  parts.sessions.CountBlockBytes(**session);
  return next_ == size();
}

}  // namespace pando
