#include "core/block_calls/block_ends.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

// How many blocks ahead the index entries are prefetched.
constexpr size_t kFetchedAhead = 8;

}  // namespace

bool BlockCompletion::Step(CacheParts& parts) {
  const absl::StatusOr<bool> is_done = TryStep(parts);
  if (!is_done.ok()) {
    result_ = is_done.status();
  } else if (*is_done) {
    result_ = unknown_;
  }
  return !is_done.ok() || *is_done;
}

absl::StatusOr<bool> BlockCompletion::TryStep(CacheParts& parts) {
  ASSIGN_OR_RETURN(Session* const session, GetBlockSession(parts, session_id_));
  if (indices_.size() > kMaxBlockKeys) {
    return MakeError(Reason::kInvalidField, Subject::kIndices,
                     absl::StrCat("are ", indices_.size(), "; the limit is ",
                                  kMaxBlockKeys));
  }
  BlockHold* const hold = parts.block_holds.Find(
      *session->blocks, {.is_reservation = true, .id = reservation_.value()});
  const bool has_begun = hold_ != 0;
  if (hold == nullptr || !hold->is_whole() ||
      (has_begun && BlockHolds::HandleOf(*hold) != hold_)) {
    EndWithoutHold();
    return true;
  }
  if (!has_begun) RETURN_IF_ERROR(Check(*hold));
  hold_ = BlockHolds::HandleOf(*hold);
  const size_t count = CountOf(*hold);
  if (!IsPrepared(count)) {
    PrepareMore(parts.blocks, *hold);
    if (count > kStepKeys) return false;
  }
  Complete(parts, *hold,
           outcome_ == Outcome::kPublished ? count : size_t{kStepKeys});
  const bool is_done = completed_ == count;
  if (hold->left == 0) parts.block_holds.Erase(*hold);
  parts.sessions.CountBlockBytes(*session);
  return is_done;
}

void BlockCompletion::EndWithoutHold() {
  keys_.clear();
  const size_t asked = std::max<size_t>(indices_.size(), 1);
  unknown_ += static_cast<uint32_t>(asked - std::min(completed_, asked));
}

absl::Status BlockCompletion::Check(const BlockHold& hold) const {
  const size_t count = hold.places.size();
  for (uint32_t index : indices_) {
    if (index < count) continue;
    return MakeError(
        Reason::kInvalidField, Subject::kIndices,
        absl::StrCat("name key ", index, "; the reservation is one of ", count,
                     " keys"));
  }
  return absl::OkStatus();
}

size_t BlockCompletion::CountOf(const BlockHold& hold) const {
  return indices_.empty() ? hold.places.size() : indices_.size();
}

size_t BlockCompletion::IndexOf(const BlockHold& hold, size_t n) const {
  return indices_.empty() ? hold.places.size() - 1 - n : indices_[n];
}

bool BlockCompletion::IsPrepared(size_t count) const {
  if (outcome_ == Outcome::kDiscarded || prepared_ == count) return true;
  return count <= kStepKeys && !notes_keys_;
}

void BlockCompletion::PrepareMore(BlockTable& blocks, const BlockHold& hold) {
  const size_t count = CountOf(hold);
  const size_t end = std::min<size_t>(count, prepared_ + kStepKeys);
  for (; prepared_ < end; ++prepared_) {
    const BlockPlace place =
        hold.places[indices_.empty() ? prepared_ : indices_[prepared_]];
    if (!IsPlace(place)) continue;
    const BlockNumber block = blocks.memory().NumberOf(place);
    blocks.Reattach(block);
    if (notes_keys_) NoteKey(blocks.memory(), block);
  }
}

void BlockCompletion::NoteKey(const BlockMemory& memory, BlockNumber block) {
  const KindNumber kind = memory.ExtentOf(block).kind->info.number;
  const auto [known, is_new] = place_in_keys_.try_emplace(kind, keys_.size());
  if (is_new) keys_.push_back({.kind = kind, .keys = {}});
  keys_[known->second].keys.append(memory.KeyOf(block));
}

void BlockCompletion::Complete(CacheParts& parts, BlockHold& hold,
                               size_t most) {
  const bool publishes = outcome_ == Outcome::kPublished;
  if (completed_ == 0) parts.blocks.NextUse();
  // Without indices it goes from the end, so that a block is handled before
  // those that it follows, and few blocks become leaves meanwhile.
  const size_t count = CountOf(hold);
  const size_t end = std::min(count, completed_ + most);
  for (; completed_ < end; ++completed_) {
    if (completed_ + kFetchedAhead < count) {
      parts.block_holds.PrefetchEnd(
          hold, IndexOf(hold, completed_ + kFetchedAhead), publishes);
    }
    const size_t index = IndexOf(hold, completed_);
    const bool was_open = publishes ? parts.block_holds.Publish(hold, index)
                                    : parts.block_holds.Discard(hold, index);
    if (!was_open && !indices_.empty()) ++unknown_;
  }
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
