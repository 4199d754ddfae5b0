// What enters and leaves the cache, for those who follow it from elsewhere.
#ifndef PANDO_EVENTS_H_
#define PANDO_EVENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

// Why pages were evicted.
enum class EvictionReason {
  kUnknown,
  kAllocation,
  kRequest,
  kWatermark,
  kQuota,
  kFlush,
};

// Pages that entered the cache, one after the other in one prompt. A block is
// the KV of one page; docs/protocol.md says how its hash of 32 bytes is made.
struct BlocksStored {
  std::vector<std::string> block_hashes;
  // The block before the first; empty: these begin a prompt.
  std::string parent_block_hash;
  // page_tokens for each block; one more at the end in a bigram namespace.
  std::vector<Token> tokens;
  uint32_t page_tokens = 0;
  std::optional<std::string> extra_key = {};
  // The cache salt is secret; it is in the hashes.
  bool has_cache_salt = false;
  bool bigram = false;
};

struct BlocksRemoved {
  std::vector<std::string> block_hashes;
  EvictionReason reason = EvictionReason::kUnknown;
};

// Nothing is cached any more; a snapshot begins with it, too.
struct AllBlocksCleared {};

// The watcher missed events and must forget what it knows; a snapshot follows.
struct EventsLost {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
};

// The snapshot is complete; what follows is live.
struct SnapshotEnd {};

struct Event {
  // The boot of pandod that numbered it.
  uint64_t epoch = 0;
  // Counts up by one, from 1 on. The events of a snapshot all have the number
  // of the last event that the snapshot contains.
  uint64_t sequence = 0;
  std::variant<BlocksStored, BlocksRemoved, AllBlocksCleared, EventsLost,
               SnapshotEnd>
      what;
};

struct WatchOptions {
  // Continue after this event, of this epoch. If the server no longer has all
  // that followed it, an EventsLost and a snapshot come instead. Unset: a
  // snapshot.
  std::optional<uint64_t> after_sequence = {};
  uint64_t epoch = 0;
};

// A running watch.
//
// Owned by the caller; may outlive its Client or Operator, whose end it does
// not notice.
// Next is for one thread at a time, Cancel for any.
class EventWatch {
 public:
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  // Waits for the next event. Fails for ever once the watch is cancelled
  // (CANCELLED) or the connection broken (UNAVAILABLE).
  absl::StatusOr<Event> Next();

  void Cancel();

 private:
  friend class Operator;
  struct Stream;

  explicit EventWatch(std::unique_ptr<Stream> stream);

  const std::unique_ptr<Stream> stream_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_EVENTS_H_
