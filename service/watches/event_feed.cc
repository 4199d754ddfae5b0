#include "service/watches/event_feed.h"

#include <utility>

#include "service/watches/event_encoding.h"

namespace pando {

EventFeed::EventFeed(EventHistory::Limits limits, std::function<void()> on_news)
    : on_news_(std::move(on_news)), history_(limits) {}

void EventFeed::Stored(const CachedPages& pages, std::span<const PageId> run) {
  if (!is_on_) return;
  messages_.Stored(pages, run, [this](v1::Event& event) { Publish(event); });
}

void EventFeed::Removed(const CachedPages& pages,
                        std::span<const PageId> removed,
                        EvictionReason reason) {
  if (!is_on_) return;
  messages_.Removed(pages, removed, reason,
                    [this](v1::Event& event) { Publish(event); });
}

void EventFeed::Cleared() {
  if (!is_on_) return;
  v1::Event event;
  event.mutable_cleared();
  Publish(event);
}

bool EventFeed::EndTurn(const CachedPages* pages) {
  if (!is_wanted_) return false;
  if (pages == nullptr) return true;
  if (!is_on_) Begin(*pages);
  const bool has_snapshot = MakeSnapshot(*pages);
  if (has_news_ || has_snapshot) on_news_();
  has_news_ = false;
  return true;
}

void EventFeed::Publish(v1::Event& event) {
  history_.Append(EncodeEvent(event, history_.next_sequence()));
  has_news_ = true;
}

void EventFeed::Begin(const CachedPages& pages) {
  is_on_ = true;
  Cleared();
  pages.ForEachRun([&](std::span<const PageId> run) { Stored(pages, run); });
}

bool EventFeed::MakeSnapshot(const CachedPages& pages) {
  const std::shared_ptr<EventSnapshot> wanted = history_.WantedSnapshot();
  if (wanted == nullptr) return false;
  const uint64_t sequence = history_.next_sequence() - 1;
  EncodedEvents events;
  const auto add = [&](v1::Event& event) { events.Add(event, sequence); };
  v1::Event cleared;
  cleared.mutable_cleared();
  add(cleared);
  pages.ForEachRun(
      [&](std::span<const PageId> run) { messages_.Stored(pages, run, add); });
  v1::Event end;
  end.mutable_snapshot_end();
  add(end);
  history_.Finish(*wanted, events.Take());
  return true;
}

}  // namespace pando
