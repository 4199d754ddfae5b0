#include <utility>

#include "base/status_macros.h"
#include "clients/cpp/src/convert.h"
#include "clients/cpp/src/operator_calls.h"
#include "clients/cpp/src/watch_stream.h"
#include "pando/events.h"
#include "pando/operator.h"

namespace pando {
inline namespace client {
namespace {

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

// Returns false for an event of a kind that this library does not know.
bool FromProto(const v1::Event& event, Event& out) {
  out.sequence = event.sequence();
  switch (event.event_case()) {
    case v1::Event::kStored:
      out.what = FromProto(event.stored());
      return true;
    case v1::Event::kRemoved:
      out.what = BlocksRemoved{
          .block_hashes = ToStrings(event.removed().block_hashes()),
          .reason = client::FromProto(event.removed().reason())};
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
  Stream(std::shared_ptr<const Endpoint> of, const v1::WatchRequest& request)
      : endpoint(std::move(of)), messages(*endpoint, request) {}

  const std::shared_ptr<const Endpoint> endpoint;
  WatchStream messages;
  // The last message, and its first event that was not yet returned.
  v1::WatchResponse response;
  int next = 0;
};

EventWatch::EventWatch(std::unique_ptr<Stream> stream)
    : stream_(std::move(stream)) {}

EventWatch::~EventWatch() = default;

absl::StatusOr<Event> EventWatch::Next() {
  Stream& stream = *stream_;
  for (;;) {
    while (stream.next < stream.response.events_size()) {
      Event event{.epoch = stream.response.epoch(), .what = SnapshotEnd()};
      if (FromProto(stream.response.events(stream.next++), event)) return event;
    }
    stream.next = 0;
    stream.response.Clear();
    RETURN_IF_ERROR(stream.messages.Read(&stream.response));
  }
}

void EventWatch::Cancel() { stream_->messages.Cancel(); }

std::unique_ptr<EventWatch> Operator::WatchEvents(const WatchOptions& options) {
  v1::WatchRequest request;
  if (options.after_sequence) {
    request.set_after_sequence(*options.after_sequence);
  }
  request.set_epoch(options.epoch);
  return std::unique_ptr<EventWatch>(new EventWatch(
      std::make_unique<EventWatch::Stream>(calls_->endpoint(), request)));
}

}  // namespace client
}  // namespace pando
