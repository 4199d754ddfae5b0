#include "service/events/event_publisher.h"

#include <pthread.h>

#include <utility>

#include "service/events/event_encoding.h"

namespace pando {
namespace {

// How long an event waits for others at most.
constexpr absl::Duration kPeriod = absl::Milliseconds(5);

}  // namespace

EventPublisher::EventPublisher(PrefixCache* cache, EventHistory::Limits limits,
                               std::function<void()> on_news)
    : cache_(cache),
      on_news_(std::move(on_news)),
      history_(limits),
      thread_([this] { Run(); }) {}

EventPublisher::~EventPublisher() {
  stop_.Notify();
  Start();
  thread_.join();
}

void EventPublisher::Start() {
  if (!start_.HasBeenNotified()) start_.Notify();
}

void EventPublisher::Run() {
  pthread_setname_np(pthread_self(), "events");
  start_.WaitForNotification();
  if (stop_.is_notified()) return;
  pages_ = std::make_unique<CachedPages>(cache_->capacity_pages(),
                                         cache_->page_tokens());
  cache_->StartEvents();
  std::vector<RawEvent> raw;
  do {
    cache_->TakeEvents(raw);
    const bool has_events = Publish(raw);
    if (MakeSnapshot() || has_events) on_news_();
  } while (!stop_.WaitFor(kPeriod));
}

bool EventPublisher::Publish(const std::vector<RawEvent>& raw) {
  for (const RawEvent& event : raw) {
    pages_->Apply(event, [this](v1::Event& published) {
      history_.Append(EncodeEvent(published, history_.next_sequence()));
    });
  }
  return !raw.empty();
}

bool EventPublisher::MakeSnapshot() {
  const std::shared_ptr<EventSnapshot> wanted = history_.WantedSnapshot();
  if (wanted == nullptr) return false;
  const uint64_t sequence = history_.next_sequence() - 1;
  std::vector<grpc::Slice> events;
  const auto add = [&](v1::Event& event) {
    events.push_back(EncodeEvent(event, sequence));
  };
  v1::Event cleared;
  cleared.mutable_cleared();
  add(cleared);
  pages_->Describe(add);
  v1::Event end;
  end.mutable_snapshot_end();
  add(end);
  history_.Finish(*wanted, std::move(events));
  return true;
}

}  // namespace pando
