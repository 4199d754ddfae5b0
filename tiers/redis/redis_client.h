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

// A command, and how it went.
struct RedisCommand {
  std::string key;  // which says who is asked
  RespRequest request;
  // Where the text of the reply goes, if anywhere.
  std::span<std::byte> value = {};
  // The server's reply, which may be an error.
  absl::StatusOr<RespReply> reply = absl::UnknownError("not sent");
};

// A server of Redis or Valkey, or a cluster of them. It asks the first time,
// and whenever something has failed, who has which keys. Deadlines are of
// MonotonicNow. Owned by RedisStore; thread-safe.
class RedisClient {
 public:
  // `seeds`: one server, or some nodes of a cluster; one at least.
  RedisClient(std::vector<RedisAddress> seeds, RedisLogin login);

  // Sends all at once, those of one node in their order.
  void Run(std::span<RedisCommand> commands, absl::Time deadline);
  // Those that have keys now.
  absl::StatusOr<std::vector<RedisAddress>> FindNodes(absl::Time deadline);
  // The reply of this node, whichever keys it has.
  absl::StatusOr<RespReply> Ask(const RedisAddress& node,
                                const RespRequest& request,
                                absl::Time deadline);

 private:
  // A command on its way to a node.
  struct Errand {
    RedisCommand* command;
    RedisAddress node;
    bool is_asking = false;
  };
  using Slots = std::shared_ptr<const RedisSlots>;

  absl::StatusOr<Slots> FindSlots(absl::Time deadline);
  absl::StatusOr<RedisSlots> AskForSlots(const RedisAddress& node,
                                         absl::Time deadline);
  Slots Remember(const RedisAddress& answered, RedisSlots slots);
  // Who has which keys is asked again before the next call.
  void ForgetSlots();
  // All of one node are neighbours.
  void RunErrands(std::span<Errand> errands, absl::Time deadline);
  absl::StatusOr<std::unique_ptr<RedisConnection>> Send(
      std::span<Errand> errands, absl::Time deadline);
  void Receive(std::span<Errand> errands,
               std::unique_ptr<RedisConnection> connection,
               absl::Time deadline);
  void Fail(std::span<Errand> errands, const absl::Status& status);
  // Those whose node sent them to another one.
  std::vector<Errand> Redirected(std::span<Errand> errands);

  const std::vector<RedisAddress> seeds_;
  RedisNodes nodes_;
  absl::Mutex mutex_;
  // Who is asked for slots, in this order: who answered comes first, who failed
  // last.
  std::vector<RedisAddress> known_ ABSL_GUARDED_BY(mutex_);
  Slots slots_ ABSL_GUARDED_BY(mutex_);  // null: not known
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_CLIENT_H_
