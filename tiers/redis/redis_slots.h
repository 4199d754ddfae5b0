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

// A table of the nodes that have the slots of keys. Plain data.
class RedisSlots {
 public:
  static constexpr size_t kSlots = 16384;

  // One server has all.
  explicit RedisSlots(const RedisAddress& node);
  // From the reply of `asked` to CLUSTER SLOTS.
  static absl::StatusOr<RedisSlots> Parse(const RespReply& reply,
                                          const RedisAddress& asked);

  // Keys must have no braces.
  static size_t SlotOf(std::string_view key);
  // Null: no node has the slot.
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

// Where a server that does not have a key sends who asked for it.
struct RedisRedirection {
  // From the text of an error of `asked`; none: it is another error.
  static std::optional<RedisRedirection> Parse(std::string_view error,
                                               const RedisAddress& asked);

  RedisAddress node;
  bool is_asking = false;  // for this time alone: the slot is being moved
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_SLOTS_H_
