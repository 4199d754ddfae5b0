// The pages that enter and leave the cache, for programs that follow it.
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

// Consecutive pages of one prompt that entered the cache. A block is the KV of
// one page; docs/protocol.md says how its hash of 32 bytes is computed.
struct BlocksStored {
  std::vector<std::string> block_hashes;
  // The block before the first one; empty: the first one begins a prompt.
  std::string parent_block_hash;
  // page_tokens tokens for each block; in a bigram namespace one more at the
  // end.
  std::vector<Token> tokens;
  uint32_t page_tokens = 0;
  std::optional<std::string> extra_key = {};
  // The salt itself is secret and not shown, but it is part of the hashes.
  bool has_cache_salt = false;
  bool bigram = false;
};

struct BlocksRemoved {
  std::vector<std::string> block_hashes;
  EvictionReason reason = EvictionReason::kUnknown;
};

// Nothing is cached any more; a snapshot begins with it, too.
struct AllBlocksCleared {};

// The watcher missed these events and must forget what it knows; a snapshot
// follows.
struct EventsLost {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
};

// The snapshot is complete; the events that follow are live.
struct SnapshotEnd {};

struct Event {
  // The run of pandod that numbered it, as in Stats.
  uint64_t epoch = 0;
  // Counts up by one, from 1 on. The events of a snapshot all have the number
  // of the last event that the snapshot contains.
  uint64_t sequence = 0;
  std::variant<BlocksStored, BlocksRemoved, AllBlocksCleared, EventsLost,
               SnapshotEnd>
      what;
};

struct WatchOptions {
  // Continue after the event of this number and run. If the server no longer
  // has all events after it, an EventsLost and a snapshot come instead. Unset:
  // begin with a snapshot.
  std::optional<uint64_t> after_sequence = {};
  // The epoch of that event.
  uint64_t epoch = 0;
};

// A running watch:
//
//   auto watch = client->WatchEvents();
//   while (true) {
//     absl::StatusOr<pando::Event> event = watch->Next();
//     if (!event.ok()) break;  // cancelled, or the connection broke
//     std::visit(handler, event->what);
//   }
//
// Owned by the caller. It may outlive the Client or Operator that made it, and
// goes on when that is destroyed. One thread at a time may call Next; any
// thread may call Cancel.
class EventWatch {
 public:
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  // Waits for the next event. Once the watch is cancelled (CANCELLED) or the
  // connection broken (UNAVAILABLE), every further call fails; begin a new
  // watch with WatchOptions::after_sequence to continue.
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
