#ifndef PANDO_TESTS_CORE_EVENT_MIRROR_H_
#define PANDO_TESTS_CORE_EVENT_MIRROR_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "core/journal/event_log.h"
#include "tests/core/reference_index.h"

namespace pando {

// The contents of a cache, rebuilt from its events.
class EventMirror {
 public:
  // Maps each cached page to the prefix that ends with it.
  using Pages = std::map<PageId, Place>;

  explicit EventMirror(uint32_t page_tokens) : page_tokens_(page_tokens) {}

  // Applies the events. Returns one sentence for each event that contradicts
  // the contents.
  std::vector<std::string> Apply(std::span<const RawEvent> events);

  const Pages& pages() const { return pages_; }

 private:
  void Apply(const PagesStored& stored);
  void Apply(const PagesRemoved& removed);
  void Apply(const PagesHit& hit);
  void Apply(const AllCleared&) { pages_.clear(); }

  const uint32_t page_tokens_;
  Pages pages_;
  std::vector<std::string> impossible_;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_EVENT_MIRROR_H_
