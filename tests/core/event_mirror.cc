#include "tests/core/event_mirror.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace pando {

std::vector<std::string> EventMirror::Apply(std::span<const RawEvent> events) {
  for (const RawEvent& event : events) {
    std::visit([this](const auto& kind) { Apply(kind); }, event);
  }
  return std::exchange(impossible_, {});
}

void EventMirror::Apply(const PagesStored& stored) {
  Place place{*stored.ns, {}};
  if (stored.parent != kPaddingPage) {
    const auto parent = pages_.find(stored.parent);
    if (parent == pages_.end() || parent->second.ns != place.ns) {
      impossible_.push_back(absl::StrCat("events: page ", stored.parent.value(),
                                         " is continued, but not there"));
      return;
    }
    place = parent->second;
  }
  const size_t tokens_of_a_page = page_tokens_ + (place.ns.bigram ? 1 : 0);
  const Token* tokens = stored.tokens(page_tokens_);
  for (PageId page : stored.pages()) {
    const Units units = UnitsOf(place.ns, {tokens, tokens_of_a_page});
    place.prefix.insert(place.prefix.end(), units.begin(), units.end());
    if (!pages_.emplace(page, place).second) {
      impossible_.push_back(
          absl::StrCat("events: page ", page.value(), " is stored twice"));
    }
    tokens += page_tokens_;
  }
}

void EventMirror::Apply(const PagesRemoved& removed) {
  for (PageId page : removed.pages) {
    if (pages_.erase(page) == 1) continue;
    impossible_.push_back(
        absl::StrCat("events: page ", page.value(), " is removed twice"));
  }
}

void EventMirror::Apply(const PagesHit& hit) {
  if (pages_.contains(hit.last)) return;
  impossible_.push_back(absl::StrCat("events: page ", hit.last.value(),
                                     " is hit, but not there"));
}

}  // namespace pando
