#include <grpcpp/client_context.h>

#include <utility>

#include "clients/cpp/src/connection.h"
#include "clients/cpp/src/convert.h"
#include "clients/cpp/src/status.h"
#include "pando/client.h"
#include "pando/events.h"
#include "pando/v1/events.grpc.pb.h"

namespace pando {
inline namespace client {
namespace {

EvictionReason FromProto(v1::EvictionReason reason) {
  switch (reason) {
    case v1::EVICTION_REASON_ALLOCATION:
      return EvictionReason::kAllocation;
    case v1::EVICTION_REASON_REQUEST:
      return EvictionReason::kRequest;
    case v1::EVICTION_REASON_WATERMARK:
      return EvictionReason::kWatermark;
    case v1::EVICTION_REASON_QUOTA:
      return EvictionReason::kQuota;
    case v1::EVICTION_REASON_FLUSH:
      return EvictionReason::kFlush;
    default:
      return EvictionReason::kUnknown;
  }
}

template <typename Strings>
std::vector<std::string> ToStrings(const Strings& from) {
  return {from.begin(), from.end()};
}

BlocksStored FromProto(const v1::BlocksStored& stored) {
  BlocksStored out{.block_hashes = ToStrings(stored.block_hashes()),
                   .parent_block_hash = stored.parent_block_hash(),
                   .tokens = ToVector(stored.tokens()),
                   .page_tokens = stored.page_tokens(),
                   .has_cache_salt = stored.has_cache_salt(),
                   .bigram = stored.bigram()};
  if (stored.has_extra_key()) out.extra_key = stored.extra_key();
  return out;
}

// False: of a kind that this library does not know.
bool FromProto(const v1::Event& event, Event& out) {
  out.sequence = event.sequence();
  switch (event.event_case()) {
    case v1::Event::kStored:
      out.what = FromProto(event.stored());
      return true;
    case v1::Event::kRemoved:
      out.what = BlocksRemoved{
          .block_hashes = ToStrings(event.removed().block_hashes()),
          .reason = FromProto(event.removed().reason())};
      return true;
    case v1::Event::kCleared:
      out.what = AllBlocksCleared();
      return true;
    case v1::Event::kLost:
      out.what = EventsLost{.first_sequence = event.lost().first_sequence(),
                            .last_sequence = event.lost().last_sequence()};
      return true;
    case v1::Event::kSnapshotEnd:
      out.what = SnapshotEnd();
      return true;
    case v1::Event::EVENT_NOT_SET:
      return false;
  }
  return false;
}

}  // namespace

struct EventWatch::Stream {
  // Keeps the channel.
  std::shared_ptr<Connection> connection;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> reader;
  // The last message, and its first event that was not yet returned.
  v1::WatchResponse response;
  int next = 0;
  // How the stream ended.
  absl::Status end;
};

EventWatch::EventWatch(std::unique_ptr<Stream> stream)
    : stream_(std::move(stream)) {}

EventWatch::~EventWatch() {
  Cancel();
  while (Next().ok()) {
  }
}

absl::StatusOr<Event> EventWatch::Next() {
  Stream& stream = *stream_;
  for (;;) {
    while (stream.next < stream.response.events_size()) {
      Event event{.epoch = stream.response.epoch(), .what = SnapshotEnd()};
      if (FromProto(stream.response.events(stream.next++), event)) return event;
    }
    if (!stream.end.ok()) return stream.end;
    stream.next = 0;
    if (!stream.reader->Read(&stream.response)) {
      stream.response.Clear();
      stream.end = FromGrpc(stream.reader->Finish());
      if (stream.end.ok()) {
        stream.end = absl::UnavailableError("the server ended the watch");
      }
    }
  }
}

void EventWatch::Cancel() { stream_->context.TryCancel(); }

std::unique_ptr<EventWatch> Client::WatchEvents(const WatchOptions& options) {
  auto stream = std::make_unique<EventWatch::Stream>();
  stream->connection = connection_;
  ShowToken(connection_->token(), stream->context);
  v1::WatchRequest request;
  if (options.after_sequence) {
    request.set_after_sequence(*options.after_sequence);
  }
  request.set_epoch(options.epoch);
  stream->reader = connection_->events().Watch(&stream->context, request);
  return std::unique_ptr<EventWatch>(new EventWatch(std::move(stream)));
}

}  // namespace client
}  // namespace pando
