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

// The amount of work in one step of a call with many keys. The unit is one key.
// A change of the order of leaves costs kLeafWork units, an eviction
// kEvictionWork units.
inline constexpr uint32_t kStepKeys = 2'048;
inline constexpr uint32_t kLeafWork = 4;
inline constexpr uint32_t kEvictionWork = 16;
// How many followed links between blocks, and how many looks for an extent to
// take, cost one unit.
inline constexpr uint32_t kLinksOfAKey = 4;
inline constexpr uint32_t kLooksOfAKey = 16;

// Returns the session of a call that takes a step, or NO_BLOCK_MEMORY or
// SESSION_LOST.
absl::StatusOr<Session*> GetBlockSession(CacheParts& parts, SessionId id);

// The keys of one kind in a call, and the kind, which the session has open.
// Plain data.
struct OpenKeys {
  Kind* kind = nullptr;
  const BlockKeys* keys = nullptr;
  size_t count = 0;

  std::string_view key(size_t i) const {
    const size_t bytes = kind->key_bytes();
    return keys->keys.substr(i * bytes, bytes);
  }
};

// Fills `open` from the keys of a call. KIND_UNKNOWN unless the session has all
// kinds open; INVALID_FIELD if the keys are not whole keys, too many, or have
// an invalid shape.
absl::Status OpenKeysOf(const CacheParts& parts, const Session& session,
                        std::span<const BlockKeys> keys,
                        std::vector<OpenKeys>& open);
// Returns the kind that the session has open with this number, or KIND_UNKNOWN.
// An internal session may use each kind that is the newest of its name without
// opening it, so it keeps no old kind alive.
absl::StatusOr<Kind*> OpenKindOf(const CacheParts& parts,
                                 const Session& session, KindNumber number);

// A call that answers keys in steps, between which other calls run. Acquire and
// Reserve store the answers in a hold (BlockHold) of their session; Lookup has
// no hold. The session has the hold from the first step on, so the hold ends
// with the session, and others find it by its name. If another call releases it
// or begins anew with its name, this call ends with nothing locked or reserved.
//
// Owned and used as SteppedWork is. The memory that the request refers to
// outlives it.
class BlockCall : public SteppedWork {
 public:
  bool Step(CacheParts& parts) final;
  // REQUIRES: the last Step returned true.
  absl::StatusOr<std::vector<BlockPlace>> Take();

 protected:
  // Without a name, the call has no hold.
  BlockCall(SessionId session, std::optional<BlockHold::Name> name,
            std::span<const BlockKeys> keys, bool all);

  // The objects that a step works with.
  struct Context {
    CacheParts& parts;
    Session& session;
    BlockHold* hold;  // null: the call has no hold
    uint32_t work;    // units left in this step
  };

  // Answers keys from next_key() on until context.work is used up. An error
  // ends the call.
  virtual absl::Status Answer(Context& context, const OpenKeys& keys) = 0;
  // Whether a call with `all` is satisfied by these answers to the keys of one
  // kind.
  virtual bool Suffices(BlockShape shape,
                        std::span<const BlockPlace> answers) const = 0;
  // The answer that replaces a place if the call ends with nothing held.
  virtual BlockPlace Undone() const = 0;

  size_t next_key() const { return next_key_; }
  bool is_all() const { return all_; }
  // Appends the answer to the next key. If it is a place and the call has a
  // hold, the block is locked or reserved already.
  void Append(Context& context, BlockPlace place);
  static void TakeWork(Context& context, uint32_t work) {
    context.work -= std::min(context.work, work);
  }

 private:
  enum class Stage { kBegin, kAnswer, kUndo };

  absl::StatusOr<bool> TryStep(CacheParts& parts);
  // Returns whether the call has begun. If not, either an older hold must be
  // released first, in more steps, or an earlier call's answer is taken over
  // and is_answered_ is set.
  absl::StatusOr<bool> Begin(Context& context);
  absl::StatusOr<bool> AnswerSome(Context& context);
  // Gives up all that the call holds. Returns whether that is done.
  bool Undo(Context& context);
  // The hold that this call fills; null if there is none (any more).
  BlockHold* OwnHold(const CacheParts& parts, const Session& session) const;

  const SessionId session_id_;
  const std::optional<BlockHold::Name> name_;
  const std::span<const BlockKeys> keys_;
  const bool all_;
  const uint64_t request_hash_;
  Stage stage_ = Stage::kBegin;
  bool is_answered_ = false;  // the answers are those of an earlier call
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
