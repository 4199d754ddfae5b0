#ifndef PANDO_TIERS_REDIS_REDIS_SLOTS_H_
#define PANDO_TIERS_REDIS_REDIS_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tiers/redis/redis_address.h"
#include "tiers/redis/resp_reader.h"

namespace pando {

// A table that says which node has which keys, by slots of keys. Plain data.
class RedisSlots {
 public:
  static constexpr size_t kSlots = 16384;

  // Makes the table of a single server, which has all slots.
  explicit RedisSlots(const RedisAddress& node);
  // Reads the reply of the node `asked` to CLUSTER SLOTS.
  static absl::StatusOr<RedisSlots> Parse(const RespReply& reply,
                                          const RedisAddress& asked);

  // Returns the slot of a key. REQUIRES: the key has no braces.
  static size_t SlotOf(std::string_view key);
  // Returns the node that has the key's slot, or null if none has it.
  const RedisAddress* NodeOf(std::string_view key) const;
  // All nodes that have a slot, each once.
  const std::vector<RedisAddress>& nodes() const { return nodes_; }

 private:
  static constexpr uint16_t kNobody = UINT16_MAX;

  RedisSlots() : node_of_slot_(kSlots, kNobody) {}
  uint16_t Add(const RedisAddress& node);

  std::vector<RedisAddress> nodes_;
  std::vector<uint16_t> node_of_slot_;  // indices of nodes_
};

// A redirection: a server that does not have a key names the node that has it.
struct RedisRedirection {
  // Reads the text of an error of the node `asked`. Returns none if it is
  // another error.
  static std::optional<RedisRedirection> Parse(std::string_view error,
                                               const RedisAddress& asked);

  RedisAddress node;
  bool is_asking = false;  // for this command only: the slot is being moved
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_SLOTS_H_
