#include "events/routers/kv_event_stream.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "os/monotonic_clock.h"

namespace pando {
namespace {

// A batch is published once it has so many bytes of events; its last event may
// exceed this.
constexpr size_t kBatchBytes = size_t{64} << 10;
constexpr size_t kMaxRemovedBlocks = 4'096;  // in one event

// Announcements take at most 1/kAnnouncementShare of the time, and there is at
// most one in each period.
constexpr absl::Duration kAnnouncementPeriod = absl::Seconds(1);
constexpr int kAnnouncementShare = 10;

}  // namespace

absl::StatusOr<std::unique_ptr<KvEventStream>> KvEventStream::Start(
    const Config& config) {
  std::unique_ptr<KvEventStream> stream(new KvEventStream(config));
  RETURN_IF_ERROR(stream->Open(config));
  return stream;
}

KvEventStream::KvEventStream(const Config& config)
    : blocks_(config.blocks), batch_(config.form), history_(config.history) {}

absl::Status KvEventStream::Open(const Config& config) {
  for (const Config::Worker& worker : config.workers) {
    ASSIGN_OR_RETURN(
        SubscriberSocket subscribers,
        SubscriberSocket::Bind(context_, worker.endpoint, worker.topic));
    subscriber_sockets_.push_back(std::move(subscribers));
    if (worker.replay_endpoint.empty()) continue;
    ASSIGN_OR_RETURN(
        ReplaySocket replays,
        ReplaySocket::Bind(context_, worker.replay_endpoint, worker.topic));
    replay_sockets_.push_back(std::move(replays));
  }
  ASSIGN_OR_RETURN(sequence_, SequenceFile::Open(config.path, absl::Now()));
  return absl::OkStatus();
}

KvEventStream::~KvEventStream() {
  if (sequence_ == nullptr) return;  // it has not been opened
  batch_.AddCleared();
  Publish();
}

void KvEventStream::Stored(const CachedPages& pages,
                           std::span<const PageId> run) {
  if (!is_telling_) return;
  blocks_.ForEachStored(pages, run, [this](const StoredBlocks& stored) {
    batch_.AddStored(stored);
    EndEvent();
  });
}

void KvEventStream::Removed(const CachedPages& pages,
                            std::span<const PageId> removed,
                            EvictionReason /*reason*/) {
  if (!is_telling_) return;
  TellRemoved(KvMedium::kGpu, blocks_.Removed(pages, removed));
}

// Subscribers drop the blocks of tiers, too, when they receive
// AllBlocksCleared; so those are published again.
void KvEventStream::Cleared() {
  if (!is_telling_) return;
  batch_.AddCleared();
  for (TierBlocks& tier : tiers_) tier.TellAllAnew();
}

void KvEventStream::FollowTiers(TierChanges* host, TierChanges* disk) {
  if (host != nullptr) tiers_.emplace_back(KvMedium::kCpu, host, &blocks_);
  if (disk != nullptr) tiers_.emplace_back(KvMedium::kStorage, disk, &blocks_);
}

void KvEventStream::TellRemoved(KvMedium medium, std::span<const BlockId> ids) {
  while (!ids.empty()) {
    const size_t count = std::min(ids.size(), kMaxRemovedBlocks);
    batch_.AddRemoved(medium, ids.first(count));
    EndEvent();
    ids = ids.subspan(count);
  }
}

void KvEventStream::TellTiers() {
  for (TierBlocks& tier : tiers_) {
    if (!is_telling_) tier.StopTelling();
    TellRemoved(tier.medium(), tier.TakeChanges());
    tier.TellSome([this](const StoredBlocks& stored) {
      batch_.AddStored(stored);
      EndEvent();
    });
  }
}

bool KvEventStream::EndTurn(const CachedPages* pages) {
  TellTiers();
  Publish();
  ServeSubscribers();
  const absl::Time now = MonotonicNow();
  if (now < next_announcement_) return is_telling_;
  if (!is_announcement_wanted_) {
    is_telling_ = counters_.subscribers > 0;
    return is_telling_;
  }
  announcement_begin_ = std::min(announcement_begin_, now);
  if (pages != nullptr) Announce(*pages);
  return true;
}

void KvEventStream::EndEvent() {
  if (batch_.bytes() >= kBatchBytes) Publish();
}

void KvEventStream::Publish() {
  if (batch_.is_empty()) return;
  const Frame frame{sequence_->Next(), std::make_shared<const std::string>(
                                           batch_.Take(absl::Now()))};
  for (SubscriberSocket& socket : subscriber_sockets_) {
    if (!socket.Send(frame)) ++counters_.dropped_frames;
    ++counters_.frames;
  }
  history_.Append(frame);
}

void KvEventStream::ServeSubscribers() {
  uint64_t subscribers = 0;
  for (SubscriberSocket& socket : subscriber_sockets_) {
    if (socket.TakeArrivals()) is_announcement_wanted_ = true;
    subscribers += socket.subscribers();
  }
  counters_.subscribers = subscribers;
  for (ReplaySocket& socket : replay_sockets_) {
    const ReplaySocket::Outcome outcome = socket.Serve(history_);
    counters_.answered_replays += outcome.answered;
    counters_.refused_replays += outcome.refused;
    if (outcome.refused > 0) is_announcement_wanted_ = true;
  }
}

void KvEventStream::Announce(const CachedPages& pages) {
  is_telling_ = true;
  is_announcement_wanted_ = false;
  ++counters_.announcements;
  Cleared();
  pages.ForEachRun([&](std::span<const PageId> run) { Stored(pages, run); });
  Publish();
  const absl::Time begin =
      std::exchange(announcement_begin_, absl::InfiniteFuture());
  const absl::Duration taken = MonotonicNow() - begin;
  next_announcement_ =
      begin + std::max(kAnnouncementPeriod, kAnnouncementShare * taken);
}

KvEventFigures KvEventStream::figures() const {
  return {.subscribers = counters_.subscribers,
          .frames = counters_.frames,
          .dropped_frames = counters_.dropped_frames,
          .answered_replays = counters_.answered_replays,
          .refused_replays = counters_.refused_replays,
          .announcements = counters_.announcements};
}

}  // namespace pando
