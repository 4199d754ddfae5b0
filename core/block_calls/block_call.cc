#include "core/block_calls/block_call.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

absl::Status KeysError(std::string_view message) {
  return MakeError(Reason::kInvalidField, Subject::kBlockKeys, message);
}

uint64_t HashOf(std::span<const BlockKeys> keys, bool all) {
  uint64_t hash = absl::HashOf(all);
  for (const BlockKeys& k : keys) {
    hash = absl::HashOf(hash, k.kind, k.shape, k.window, k.keys, k.before);
  }
  return hash;
}

absl::Status CheckShape(const BlockKeys& keys, size_t index) {
  if (keys.shape != BlockShape::kWindow) return absl::OkStatus();
  if (keys.window >= 1 && keys.window <= kMaxWindow) return absl::OkStatus();
  return KeysError(absl::StrCat("[", index, "].window is ", keys.window,
                                "; it must be 1 to ", kMaxWindow));
}

absl::Status CheckLength(const BlockKeys& keys, size_t index,
                         uint32_t key_bytes) {
  if (keys.keys.size() % key_bytes != 0) {
    return KeysError(absl::StrCat("[", index, "].keys has ", keys.keys.size(),
                                  " bytes; it must be a multiple of the ",
                                  key_bytes, " that a key of this kind has"));
  }
  if (!keys.before.empty() && keys.before.size() != key_bytes) {
    return KeysError(absl::StrCat("[", index, "].before has ",
                                  keys.before.size(),
                                  " bytes; it must have none or the ",
                                  key_bytes, " of a key of this kind"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Session*> GetBlockSession(CacheParts& parts, SessionId id) {
  if (parts.blocks.memory_bytes() == 0) {
    return MakeError(Reason::kNoBlockMemory, "there is no block memory here");
  }
  return parts.sessions.GetForStep(id);
}

absl::StatusOr<Kind*> OpenKindOf(const CacheParts& parts,
                                 const Session& session, KindNumber number) {
  const OpenKindList& kinds = session.blocks->kinds;
  if (const auto it = kinds.find(number); it != kinds.end()) return it->second;
  if (session.is_internal) {
    Kind* const kind = parts.blocks.kinds().Find(number);
    if (kind != nullptr && kind->is_newest) return kind;
  }
  return MakeError(Reason::kKindUnknown, Subject::kKinds,
                   absl::StrCat("the session has no kind ", number.value(),
                                " open; open it, or find it, first"));
}

absl::Status OpenKeysOf(const CacheParts& parts, const Session& session,
                        std::span<const BlockKeys> keys,
                        std::vector<OpenKeys>& open) {
  size_t count = keys.size() <= kMaxBlockKeys ? 0 : keys.size();
  open.clear();
  for (size_t i = 0; i < keys.size() && count <= kMaxBlockKeys; ++i) {
    ASSIGN_OR_RETURN(Kind* const kind,
                     OpenKindOf(parts, session, keys[i].kind));
    RETURN_IF_ERROR(CheckLength(keys[i], i, kind->key_bytes()));
    RETURN_IF_ERROR(CheckShape(keys[i], i));
    open.push_back({.kind = kind,
                    .keys = &keys[i],
                    .count = keys[i].keys.size() / kind->key_bytes()});
    count += open.back().count;
  }
  if (count <= kMaxBlockKeys) return absl::OkStatus();
  return KeysError(absl::StrCat("are ", count, " or more; the limit is ",
                                kMaxBlockKeys, " in a call"));
}

BlockCall::BlockCall(SessionId session, std::optional<BlockHold::Name> name,
                     std::span<const BlockKeys> keys, bool all)
    : session_id_(session),
      name_(name),
      keys_(keys),
      all_(all),
      request_hash_(name.has_value() ? HashOf(keys, all) : 0) {
  // The memory that a step fills is allocated here, outside the mutex.
  size_t bytes = 0;
  for (const BlockKeys& k : keys) bytes += k.keys.size();
  answers_.reserve(std::min(bytes / kMinKeyBytes, kMaxBlockKeys));
  open_.reserve(std::min(keys.size(), kMaxBlockKeys));
}

bool BlockCall::Step(CacheParts& parts) {
  const absl::StatusOr<bool> is_done = TryStep(parts);
  if (is_done.ok()) return *is_done;
  status_ = is_done.status();
  return true;
}

absl::StatusOr<std::vector<BlockPlace>> BlockCall::Take() {
  RETURN_IF_ERROR(status_);
  return std::move(answers_);
}

absl::StatusOr<bool> BlockCall::TryStep(CacheParts& parts) {
  ASSIGN_OR_RETURN(Session* const session, GetBlockSession(parts, session_id_));
  Context context{parts, *session, nullptr, kStepKeys};
  if (stage_ == Stage::kBegin) {
    ASSIGN_OR_RETURN(const bool has_begun, Begin(context));
    if (!has_begun) return is_answered_;
  }
  context.hold = OwnHold(parts, *session);
  bool is_done = false;
  if (stage_ == Stage::kAnswer) {
    const absl::StatusOr<bool> answered = AnswerSome(context);
    if (answered.ok()) {
      is_done = *answered;
    } else {
      status_ = answered.status();
      stage_ = Stage::kUndo;
    }
  }
  if (stage_ == Stage::kUndo) is_done = Undo(context);
  parts.sessions.CountBlockBytes(*session);
  return is_done;
}

absl::StatusOr<bool> BlockCall::Begin(Context& context) {
  auto& [parts, session, hold, work] = context;
  RETURN_IF_ERROR(OpenKeysOf(parts, session, keys_, open_));
  if (name_.has_value()) {
    const Subject subject =
        name_->is_reservation ? Subject::kReservation : Subject::kBlockLock;
    if (name_->id == 0) {
      return MakeError(Reason::kInvalidField, subject,
                       "is 0; the client must choose another number");
    }
    size_t count = 0;
    for (const OpenKeys& keys : open_) count += keys.count;
    BlockHold* const there = parts.block_holds.Find(*session.blocks, *name_);
    if (there != nullptr && there->is_whole()) {
      if (there->places.size() != count) {
        return MakeError(
            Reason::kInvalidField, subject,
            absl::StrCat(name_->id, " is one of ", there->places.size(),
                         " keys, and this call has ", count));
      }
      if (there->request_hash != request_hash_) {
        return MakeError(
            Reason::kInvalidField, subject,
            absl::StrCat(name_->id,
                         " is one of other keys; each call needs a number"));
      }
      answers_ = there->places;
      is_answered_ = true;
      return false;
    }
    // The hold is not whole: another call has begun it and not finished, or has
    // begun to release it. This call releases it first.
    if (there != nullptr && !parts.block_holds.Release(*there, work)) {
      return false;
    }
    if (!session.holds_anything()) RETURN_IF_ERROR(parts.CheckAdmits());
    RETURN_IF_ERROR(
        parts.sessions.CheckMoreBytes(session, BlockHolds::BytesOf(count)));
    call_ = parts.block_holds.NextCall();
    BlockHold& added = parts.block_holds.Add(*session.blocks, *name_, count);
    added.filled_by = call_;
    added.request_hash = request_hash_;
  }
  parts.blocks.NextUse();
  stage_ = Stage::kAnswer;
  return true;
}

BlockHold* BlockCall::OwnHold(const CacheParts& parts,
                              const Session& session) const {
  if (!name_.has_value()) return nullptr;
  BlockHold* const hold = parts.block_holds.Find(*session.blocks, *name_);
  return hold != nullptr && !hold->is_ending && hold->filled_by == call_
             ? hold
             : nullptr;
}

absl::StatusOr<bool> BlockCall::AnswerSome(Context& context) {
  auto& [parts, session, hold, work] = context;
  if (name_.has_value() && hold == nullptr) {
    stage_ = Stage::kUndo;
    return false;
  }
  // The session may have closed kinds since the last step.
  RETURN_IF_ERROR(OpenKeysOf(parts, session, keys_, open_));
  for (; next_ < open_.size(); ++next_, next_key_ = 0) {
    const OpenKeys& keys = open_[next_];
    if (keys.count > next_key_) RETURN_IF_ERROR(Answer(context, keys));
    if (next_key_ < keys.count) return false;
    suffices_ = suffices_ && Suffices(keys.keys->shape,
                                      std::span(answers_).last(keys.count));
  }
  if (all_ && !suffices_) {
    stage_ = Stage::kUndo;
    return false;
  }
  if (hold != nullptr) {
    hold->filled_by = 0;
    if (hold->left == 0) parts.block_holds.Erase(*hold);
  }
  return true;
}

bool BlockCall::Undo(Context& context) {
  if (context.hold != nullptr &&
      !context.parts.block_holds.GiveUpAll(*context.hold, context.work)) {
    return false;
  }
  for (BlockPlace& answer : answers_) {
    if (IsPlace(answer)) answer = Undone();
  }
  size_t count = 0;
  for (const OpenKeys& keys : open_) count += keys.count;
  answers_.resize(count, kNotLookedAt);
  return true;
}

void BlockCall::Append(Context& context, BlockPlace place) {
  answers_.push_back(place);
  if (context.hold != nullptr) {
    context.parts.block_holds.Append(*context.hold, place);
  }
  ++next_key_;
}

}  // namespace pando
