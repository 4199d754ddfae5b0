#ifndef PANDO_TIERS_REDIS_REDIS_CLIENT_H_
#define PANDO_TIERS_REDIS_REDIS_CLIENT_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tiers/redis/redis_address.h"
#include "tiers/redis/redis_connection.h"
#include "tiers/redis/redis_nodes.h"
#include "tiers/redis/redis_slots.h"
#include "tiers/redis/resp_reader.h"
#include "tiers/redis/resp_request.h"

namespace pando {

// A command and its result.
struct RedisCommand {
  std::string key;  // says which node gets the command
  RespRequest request;
  // If it is not empty, the text of the reply is read into it: see
  // RespReader::ReadInto.
  std::span<std::byte> value = {};
  // The server's reply, which may be an error.
  absl::StatusOr<RespReply> reply = absl::UnknownError("not sent");
};

// A client of one Redis or Valkey server, or of a cluster. At its first call,
// and after each failure, it asks which node has which keys. Deadlines are of
// MonotonicNow. Owned by RedisStore; thread-safe.
class RedisClient {
 public:
  // `seeds` are one server, or some nodes of a cluster. REQUIRES: there is at
  // least one.
  RedisClient(std::vector<RedisAddress> seeds, RedisLogin login);

  // Sends all commands at once, those for one node in their order, and sets
  // their replies.
  void Run(std::span<RedisCommand> commands, absl::Time deadline);
  // Returns the nodes that have keys now.
  absl::StatusOr<std::vector<RedisAddress>> FindNodes(absl::Time deadline);
  // Returns the reply of this node, whichever keys it has. It may have up to
  // RespReader::kMaxReply bytes.
  absl::StatusOr<RespReply> Ask(const RedisAddress& node,
                                const RespRequest& request,
                                absl::Time deadline);

 private:
  // A command on its way to a node.
  struct Errand {
    RedisCommand* command;
    RedisAddress node;
    bool is_asking = false;  // ASKING is sent before it
  };
  using Slots = std::shared_ptr<const RedisSlots>;

  absl::StatusOr<Slots> FindSlots(absl::Time deadline);
  absl::StatusOr<RedisSlots> AskForSlots(const RedisAddress& node,
                                         absl::Time deadline);
  Slots Remember(const RedisAddress& answered, RedisSlots slots);
  // Makes the next call ask again which node has which keys.
  void ForgetSlots();
  // Sends the errands and reads their replies. REQUIRES: errands for one node
  // are neighbours.
  void RunErrands(std::span<Errand> errands, absl::Time deadline);
  absl::StatusOr<std::unique_ptr<RedisConnection>> Send(
      std::span<Errand> errands, absl::Time deadline);
  void Receive(std::span<Errand> errands,
               std::unique_ptr<RedisConnection> connection,
               absl::Time deadline);
  void Fail(std::span<Errand> errands, const absl::Status& status);
  // Returns the errands that their nodes have redirected to other nodes.
  std::vector<Errand> Redirected(std::span<Errand> errands);

  const std::vector<RedisAddress> seeds_;
  RedisNodes nodes_;
  absl::Mutex mutex_;
  // The nodes that are asked for slots, in this order: the one that answered
  // last is first, and one that failed moves to the end.
  std::vector<RedisAddress> known_ ABSL_GUARDED_BY(mutex_);
  Slots slots_ ABSL_GUARDED_BY(mutex_);  // null if it must be asked for
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_CLIENT_H_
