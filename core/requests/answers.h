#ifndef PANDO_CORE_REQUESTS_ANSWERS_H_
#define PANDO_CORE_REQUESTS_ANSWERS_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/requests/errors.h"
#include "core/requests/requests.h"

namespace pando {

// The answers of Unlock and Free, which carry nothing.
struct Unlocked {};
struct Freed {};

using Answer = std::variant<MatchResult, InsertResult, LockResult,
                            AllocateResult, Unlocked, Freed>;

// Keeps the answers to the last calls of one session that had a request id, so
// that a call which is sent again gets its first answer and is not carried out
// twice. The number of answers and of page ids in them is bounded: the oldest
// answers are dropped first, but never the last one.
//
// Owned by Session; not thread-safe.
class Answers {
 public:
  static constexpr size_t kMaxAnswers = 256;
  static constexpr size_t kMaxPageIds = size_t{1} << 18;
  // The bytes that an answer counts as, without its page ids.
  static constexpr size_t kAnswerBytes = 256;

  // Returns the kept answer, or null. REQUEST_ID_REUSED if the answer of this
  // id is that of another type of call.
  template <typename T>
  absl::StatusOr<const T*> Find(RequestId id) const {
    const auto it = answers_.find(id);
    if (it == answers_.end()) return nullptr;
    if (const T* answer = std::get_if<T>(it->second.get())) return answer;
    return MakeError(Reason::kRequestIdReused,
                     "request_id was used by another kind of call");
  }

  // Keeps an answer, and drops the oldest ones that exceed the bounds.
  // REQUIRES: there is no answer of this id.
  void Add(RequestId id, Answer answer);

  // The bytes of memory of all answers.
  size_t bytes() const {
    return answers_.size() * kAnswerBytes + page_ids_ * sizeof(PageId);
  }

 private:
  absl::flat_hash_map<RequestId, std::unique_ptr<const Answer>> answers_;
  std::deque<RequestId> oldest_first_;
  size_t page_ids_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_ANSWERS_H_
