#ifndef PANDO_EVENTS_ROUTERS_KV_EVENT_STREAM_H_
#define PANDO_EVENTS_ROUTERS_KV_EVENT_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "events/routers/frame_history.h"
#include "events/routers/kv_event_batch.h"
#include "events/routers/kv_events.h"
#include "events/routers/published_blocks.h"
#include "events/routers/replay_socket.h"
#include "events/routers/sequence_file.h"
#include "events/routers/subscriber_socket.h"
#include "events/routers/tier_blocks.h"

namespace pando {

// One stream of numbered frames, which is served under the endpoints of all
// workers. A subscriber that has all frames knows exactly what is cached. A
// subscriber that misses some knows it again after the next announcement:
// AllBlocksCleared, then all blocks, each after its parent, those of tiers
// after those of the pool. Announcements are a part of the live stream. There
// is one after each new subscription, and one when a subscriber asks for frames
// that are not held any more. While there are no subscribers, nothing is
// published.
class KvEventStream : public KvEvents {
 public:
  struct Config {
    KvEventForm form = KvEventForm::kMap;
    PublishedBlocks::Config blocks = {};
    // One entry for each worker of an engine.
    struct Worker {
      std::string endpoint;
      std::string replay_endpoint = {};  // empty: no replays
      std::string topic = {};
    };
    std::vector<Worker> workers = {};
    // The path of the sequence file: see SequenceFile.
    std::string path;
    FrameHistory::Limits history = {.frames = 10'000,
                                    .bytes = size_t{128} << 20};
  };

  // An error names the endpoint that cannot be bound, or the file that cannot
  // be used.
  static absl::StatusOr<std::unique_ptr<KvEventStream>> Start(
      const Config& config);
  // Tells the subscribers that nothing is cached any more.
  ~KvEventStream() override;

  void Stored(const CachedPages& pages, std::span<const PageId> run) override;
  void Removed(const CachedPages& pages, std::span<const PageId> removed,
               EvictionReason reason) override;
  void Cleared() override;
  bool EndTurn(const CachedPages* pages) override;
  void FollowTiers(TierChanges* host, TierChanges* disk) override;
  KvEventFigures figures() const override;

 private:
  // Written by the publisher's thread, read by any.
  struct Counters {
    std::atomic<uint64_t> subscribers = 0;
    std::atomic<uint64_t> frames = 0;
    std::atomic<uint64_t> dropped_frames = 0;
    std::atomic<uint64_t> answered_replays = 0;
    std::atomic<uint64_t> refused_replays = 0;
    std::atomic<uint64_t> announcements = 0;
  };

  explicit KvEventStream(const Config& config);

  absl::Status Open(const Config& config);
  void TellRemoved(KvMedium medium, std::span<const BlockId> ids);
  // Publishes the changes in the tiers, and some of their blocks that have not
  // been published yet.
  void TellTiers();
  // Publishes the batch if it has become large enough.
  void EndEvent();
  // Publishes the batch, unless it is empty.
  void Publish();
  // Takes new subscriptions, and answers requests for replays.
  void ServeSubscribers();
  // Publishes an announcement.
  void Announce(const CachedPages& pages);

  PublishedBlocks blocks_;
  std::vector<TierBlocks> tiers_;
  KvEventBatch batch_;
  FrameHistory history_;
  std::unique_ptr<SequenceFile> sequence_;
  zmq::context_t context_;
  std::vector<SubscriberSocket> subscriber_sockets_;
  std::vector<ReplaySocket> replay_sockets_;
  // Whether events are published. It is true at first, because subscribers of
  // an earlier process must learn of the restart.
  bool is_telling_ = true;
  bool is_announcement_wanted_ = false;
  // When the work for the next announcement began; infinite if it has not
  // begun.
  absl::Time announcement_begin_ = absl::InfiniteFuture();
  // No announcement begins before this time.
  absl::Time next_announcement_ = absl::InfinitePast();
  Counters counters_;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_KV_EVENT_STREAM_H_
