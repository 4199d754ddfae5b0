#include "service/metrics/regret_meter.h"

#include <vector>

#include "os/monotonic_clock.h"

namespace pando {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(50);

}  // namespace

RegretMeter::RegretMeter(PrefixCache* cache)
    : cache_(cache), thread_([this] { Run(); }) {}

RegretMeter::~RegretMeter() {
  stop_.Notify();
  thread_.join();
}

RegretFigures RegretMeter::Figures() const {
  absl::MutexLock hold(&mutex_);
  return figures_;
}

void RegretMeter::Run() {
  RegretIndex index(cache_->capacity_pages(), cache_->page_tokens());
  std::vector<RawEvent> events;
  do {
    cache_->TakeChurn(events);
    const absl::Time now = MonotonicNow();
    for (const RawEvent& event : events) index.Apply(event, now);
    absl::MutexLock hold(&mutex_);
    figures_ = index.figures();
  } while (!stop_.WaitFor(kPeriod));
}

}  // namespace pando
