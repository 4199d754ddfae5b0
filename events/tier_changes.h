#ifndef PANDO_EVENTS_TIER_CHANGES_H_
#define PANDO_EVENTS_TIER_CHANGES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "core/nodes/page_hash.h"
#include "core/requests/namespace_key.h"

namespace pando {

// A tier has a copy of a page from now on, or has it no more.
struct TierChange {
  struct Page {
    // The page before it in its prompt, if it does not begin it.
    PageHash before;
    // How many pages of the prompt end with it: 1 for the first page.
    uint32_t ordinal;
    std::shared_ptr<const NamespaceKey> ns;
    // They spell the page: page_tokens, one more in a bigram namespace.
    std::vector<Token> tokens;
  };

  PageHash hash;
  std::optional<Page> stored;  // none: it is gone
};

// Tells change by change which pages a tier of this machine has. Thread-safe.
class TierChanges {
 public:
  virtual ~TierChanges() = default;

  // Tells of changes from now on. Must be called before there is any.
  virtual void FollowChanges() = 0;
  // The changes since the last call, in order. A page is said to be gone only
  // after it was said to be stored.
  virtual std::vector<TierChange> TakeChanges() = 0;
};

}  // namespace pando

#endif  // PANDO_EVENTS_TIER_CHANGES_H_
