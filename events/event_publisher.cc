#include "events/event_publisher.h"

#include <pthread.h>

#include <utility>
#include <variant>

namespace pando {
namespace {

// The longest time that an event waits for others.
constexpr absl::Duration kPeriod = absl::Milliseconds(2);
// The longest time that the first subscriber waits until its events begin.
constexpr absl::Duration kIdlePeriod = absl::Milliseconds(20);

}  // namespace

EventPublisher::EventPublisher(PrefixCache* cache,
                               std::vector<EventSink*> sinks)
    : cache_(cache), sinks_(std::move(sinks)), thread_([this] { Run(); }) {}

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
  StartFollowing();
  do {
    const bool is_wanted = TakeTurn();
    if (is_wanted && pages_ == nullptr) StartFollowing();
    if (!is_wanted && pages_ != nullptr) StopFollowing();
  } while (!stop_.WaitFor(pages_ == nullptr ? kIdlePeriod : kPeriod));
}

void EventPublisher::StartFollowing() {
  pages_ = std::make_unique<CachedPages>(cache_->capacity_pages(),
                                         cache_->page_tokens());
  cache_->StartEvents();
}

void EventPublisher::StopFollowing() {
  cache_->StopEvents();
  pages_.reset();
}

bool EventPublisher::TakeTurn() {
  for (bool has_more = true; has_more;) {
    has_more = !cache_->TakeEvents(raw_);
    for (const RawEvent& event : raw_) Publish(event);
  }
  bool is_wanted = false;
  for (EventSink* sink : sinks_) is_wanted |= sink->EndTurn(pages_.get());
  return is_wanted;
}

void EventPublisher::Publish(const RawEvent& event) {
  if (const auto* stored = std::get_if<PagesStored>(&event)) {
    pages_->Store(*stored);
    for (EventSink* sink : sinks_) sink->Stored(*pages_, stored->pages());
  } else if (const auto* removed = std::get_if<PagesRemoved>(&event)) {
    for (EventSink* sink : sinks_) {
      sink->Removed(*pages_, removed->pages, removed->reason);
    }
    pages_->Remove(removed->pages);
  } else if (const auto* hit = std::get_if<PagesHit>(&event)) {
    for (EventSink* sink : sinks_) sink->Hit(*pages_, hit->last);
  } else {
    pages_->Clear();
    for (EventSink* sink : sinks_) sink->Cleared();
  }
}

}  // namespace pando
