#ifndef PANDO_CORE_BLOCK_CALLS_BLOCK_CALL_H_
#define PANDO_CORE_BLOCK_CALLS_BLOCK_CALL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/blocks/block_holds.h"
#include "core/blocks/kind.h"
#include "core/parts/stepped_work.h"
#include "core/requests/block_requests.h"
#include "core/sessions/session_table.h"

namespace pando {

// The work of one step of a call with many keys. A unit is a key; a change of
// the order of leaves, and an eviction, cost as much as several.
inline constexpr uint32_t kStepKeys = 2'048;
inline constexpr uint32_t kLeafWork = 4;
inline constexpr uint32_t kEvictionWork = 16;
// Links between blocks, and looks for an extent to take, that cost as much as a
// key.
inline constexpr uint32_t kLinksOfAKey = 4;
inline constexpr uint32_t kLooksOfAKey = 16;

// The session of a call that takes a step; or NO_BLOCK_MEMORY, SESSION_LOST.
absl::StatusOr<Session*> GetBlockSession(CacheParts& parts, SessionId id);

// Keys of a kind that the session has open. Plain data.
struct OpenKeys {
  Kind* kind = nullptr;
  const BlockKeys* keys = nullptr;
  size_t count = 0;

  std::string_view key(size_t i) const {
    const size_t bytes = kind->key_bytes();
    return keys->keys.substr(i * bytes, bytes);
  }
};

// KIND_UNKNOWN unless the session has all kinds open; INVALID_FIELD when the
// keys are no whole keys, too many, or their shape is none.
absl::Status OpenKeysOf(const CacheParts& parts, const Session& session,
                        std::span<const BlockKeys> keys,
                        std::vector<OpenKeys>& open);
// The kind that the session has open with this number, or KIND_UNKNOWN. A part
// of pandod has each kind open that is the newest of its name: it keeps none
// from going.
absl::StatusOr<Kind*> OpenKindOf(const CacheParts& parts,
                                 const Session& session, KindNumber number);

// A call that answers keys in steps, between which others run. Most such calls
// fill a hold of their session with the answers. The hold is the session's from
// the first step on, so that it ends with the session, and is found by its
// name: a call that gives it back, or another one that takes it over, ends this
// one, which then has locked and reserved nothing.
//
// Owned and used as SteppedWork is; what the request refers to outlives it.
class BlockCall : public SteppedWork {
 public:
  bool Step(CacheParts& parts) final;
  // REQUIRES: the last Step returned true.
  absl::StatusOr<std::vector<BlockPlace>> Take();

 protected:
  // Without a name nothing is held.
  BlockCall(SessionId session, std::optional<BlockHold::Name> name,
            std::span<const BlockKeys> keys, bool all);

  // The things that a step works with.
  struct Context {
    CacheParts& parts;
    Session& session;
    BlockHold* hold;  // null: nothing is held
    uint32_t work;    // that is left of the step
  };

  // Answers keys from next_key() on, as far as there is work left; an error
  // ends the call.
  virtual absl::Status Answer(Context& context, const OpenKeys& keys) = 0;
  // Whether these answers to keys suffice for a call with `all`.
  virtual bool Suffices(BlockShape shape,
                        std::span<const BlockPlace> answers) const = 0;
  // The answer in place of a place, when nothing is held in the end.
  virtual BlockPlace Undone() const = 0;

  size_t next_key() const { return next_key_; }
  bool is_all() const { return all_; }
  // The answer to the next key; what a place names is locked, or reserved.
  void Append(Context& context, BlockPlace place);
  static void TakeWork(Context& context, uint32_t work) {
    context.work -= std::min(context.work, work);
  }

 private:
  enum class Stage { kBegin, kAnswer, kUndo };

  absl::StatusOr<bool> TryStep(CacheParts& parts);
  // Returns whether the call has begun; else there is more to do first, or
  // the answer is there already, and is_answered_ says so.
  absl::StatusOr<bool> Begin(Context& context);
  absl::StatusOr<bool> AnswerSome(Context& context);
  // Gives up what is held. Returns whether that is done.
  bool Undo(Context& context);
  BlockHold* OwnHold(const CacheParts& parts, const Session& session) const;

  const SessionId session_id_;
  const std::optional<BlockHold::Name> name_;
  const std::span<const BlockKeys> keys_;
  const bool all_;
  const uint64_t request_hash_;
  Stage stage_ = Stage::kBegin;
  bool is_answered_ = false;  // by an earlier call
  uint64_t call_ = 0;         // BlockHold::filled_by
  std::vector<OpenKeys> open_;
  size_t next_ = 0;      // of open_
  size_t next_key_ = 0;  // of open_[next_]
  bool suffices_ = true;
  std::vector<BlockPlace> answers_;
  absl::Status status_;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CALLS_BLOCK_CALL_H_
