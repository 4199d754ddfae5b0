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

// The result of a call that returns nothing but its success.
struct Done {};

// The answer of one call of a batch: a promise that Batch::Send fulfils. Cheap
// to copy; all copies share one answer.
template <typename T>
class Answer {
 public:
  // Returns the result of the call, or the error that it would have had outside
  // a batch. REQUIRES: the batch was sent, and the result was not taken before.
  absl::StatusOr<T> Take() { return std::move(*result_); }

 private:
  friend class Batch;

  std::shared_ptr<absl::StatusOr<T>> result_ =
      std::make_shared<absl::StatusOr<T>>(
          absl::FailedPreconditionError("the batch was not sent yet"));
};

// Several calls that travel together: one doorbell on a lane, one call over
// gRPC. For example, the finish of one request with the admission of the next:
//
//   pando::Batch batch = client->NewBatch();
//   auto finished = batch.Insert(tokens, page_ids,
//                                {.lock = &lock,
//                                 .lock_action = pando::LockAction::kUnlock});
//   auto admitted = batch.MatchPrefix(prompt, {.lock = true,
//                                              .reserve_tokens = room});
//   batch.Send();                                  // waits for all answers
//   absl::StatusOr<pando::Match> match = admitted.Take();
//
// The calls begin in the order in which they were added. One that fails does
// not keep the others from being carried out. Each takes the arguments of the
// method of Client with the same name; tokens and locks that they refer to must
// stay valid and unchanged until Send returns. Destroying a batch that was not
// sent does nothing.
//
// Made by Client::NewBatch; the Client must outlive it. Thread-compatible.
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

  // Sends the calls that were added since the last Send, and waits for all
  // their answers. The batch may then be used again.
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
