#ifndef PANDO_TIERS_BLOCKS_SHARED_QUESTION_H_
#define PANDO_TIERS_BLOCKS_SHARED_QUESTION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/ids.h"
#include "core/kept_bytes.h"
#include "core/requests/block_requests.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// The keys of one kind that a call asks a shared store for, and what the store
// has said so far.
struct SharedQuestion {
  // Tells questions apart by their keys: the first one, the last one, and how
  // many there are. While a question is not answered, another one about the
  // same keys would learn no more.
  using Id = std::pair<std::pair<BlockName, BlockName>, size_t>;

  // REQUIRES: `keys` is not empty.
  static Id IdOf(const KnownKind& kind, std::string_view keys);
  Id id() const { return IdOf(*kind, keys); }
  BlockKeys row() const;
  BlockName NameAt(uint32_t position) const {
    return kind->NameOf(kind->KeyOf(keys, position));
  }

  // Says that the store was asked for nothing yet.
  void Begin();
  // Returns the positions to ask for next; empty if it is known what the shape
  // needs. Windows and checkpoints are searched from the end. Only few keys are
  // asked for at first: if the first key of a prefix is missing, the others are
  // of no use.
  std::span<const uint32_t> Next() const;
  // Takes in whether the store has the keys of Next.
  void Take(const std::vector<bool>& present);

  std::shared_ptr<KnownKind> kind;
  std::string keys;
  std::string before;
  BlockShape shape = BlockShape::kEach;
  uint32_t window = 0;
  // The answer to each key so far. Blocks that the disk has, or that are being
  // loaded, are pending.
  std::vector<BlockPlace> answers;
  // The positions of the keys that the store may have.
  std::vector<uint32_t> asked;
  SessionId asked_by;
  KeptBytes account;  // counts the memory of the question

  // The store was not asked yet for asked[begin] to asked[end - 1].
  size_t begin = 0;
  size_t end = 0;
  size_t most = 0;         // Next returns at most so many
  std::vector<bool> kept;  // what the store has, by position
  std::vector<BlockName> absent;
};

// The questions that wait. Each session is served in its turn, so that one with
// many or long questions does not hold up others. Guarded by its owner; not
// thread-safe.
class QuestionQueue {
 public:
  // Returns whether the question waits, or was taken and has not ended.
  bool Has(const SharedQuestion::Id& id) const { return ids_.contains(id); }
  bool empty() const { return by_session_.empty(); }
  // Returns whether no more questions of a session may wait.
  bool IsFullFor(SessionId session) const;
  // REQUIRES: not Has.
  void Add(SharedQuestion question);
  // Takes a question of the next session. REQUIRES: not empty.
  SharedQuestion Take();
  // Puts back a question that was taken, before others of its session.
  void PutBack(SharedQuestion question);
  // Says that a question that was taken has its answer.
  void End(const SharedQuestion::Id& id) { ids_.erase(id); }
  // Takes all questions of a session, which end with that.
  std::deque<SharedQuestion> TakeAll(SessionId session);

 private:
  std::map<SessionId, std::deque<SharedQuestion>> by_session_;
  absl::flat_hash_set<SharedQuestion::Id> ids_;
  SessionId last_;  // the session that was served last
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SHARED_QUESTION_H_
