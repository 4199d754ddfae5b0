// Many calls at once.
#ifndef PANDO_BATCH_H_
#define PANDO_BATCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pando/lock.h"
#include "pando/requests.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

class Client;

// Of a call that answers with nothing but its success.
struct Done {};

// What one call of a batch gave, once the batch was sent. Cheap to copy; all
// copies are of the same answer.
template <typename T>
class Answer {
 public:
  // The result, once; or the error that the call would have had by itself.
  // REQUIRES: the batch was sent, and nobody took the result before.
  absl::StatusOr<T> Take() { return std::move(*result_); }

 private:
  friend class Batch;

  std::shared_ptr<absl::StatusOr<T>> result_ =
      std::make_shared<absl::StatusOr<T>>(
          absl::FailedPreconditionError("the batch was not sent yet"));
};

// Calls that go together: one doorbell on a lane, one call over gRPC. They
// begin in their order, and one that fails does not keep the others from being
// carried out. Each takes what the call of the same name of Client takes; what
// its arguments refer to (tokens, locks) must stay as it is until the batch was
// sent. One that was not sent does nothing.
//
// Made by Client, which outlives it. Thread-compatible.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  ~Batch();

  Answer<Match> MatchPrefix(std::span<const Token> tokens,
                            const MatchOptions& options = {});
  Answer<InsertResult> Insert(std::span<const Token> tokens,
                              std::span<const PageId> page_ids,
                              const InsertOptions& options);
  Answer<Lock> TakeLock(std::span<const Token> tokens,
                        const LockOptions& options = {});
  Answer<Done> Unlock(std::span<Lock> locks);
  Answer<ReservedPages> AllocatePages(uint32_t pages, const Namespace& ns = {},
                                      std::optional<uint32_t> at_least = {});
  Answer<Done> FreePages(const ReservedPages& pages);

  // Sends the calls that were added since the last time, and waits for all of
  // their answers.
  void Send();

 private:
  friend class Client;
  class Entry;

  explicit Batch(Client* client);
  // `run` makes the call: absl::StatusOr<T> run(Exchange&).
  template <typename T, typename Run>
  Answer<T> Add(Run run);
  void Begin(std::span<Entry* const> entries);

  Client* client_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_BATCH_H_
