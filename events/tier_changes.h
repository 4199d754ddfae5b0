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

// Says that a tier has a copy of a page from now on, or that it does not have
// it any more.
struct TierChange {
  struct Page {
    // The hash of the page before it in its prompt; zeros if it begins the
    // prompt.
    PageHash before;
    // How many pages of the prompt end with it: 1 for the first page.
    uint32_t ordinal;
    std::shared_ptr<const NamespaceKey> ns;
    // The tokens that spell the page: page_tokens of them, one more in a bigram
    // namespace.
    std::vector<Token> tokens;
  };

  PageHash hash;
  std::optional<Page> stored;  // none if the tier does not have it any more
};

// Reports, change by change, which pages a tier of this machine has.
// TakeChanges is thread-safe.
class TierChanges {
 public:
  virtual ~TierChanges() = default;

  // Starts the reports. Must be called before there is any change.
  virtual void FollowChanges() = 0;
  // Returns the changes since the last call, in order. Only pages that were
  // reported as stored are reported as gone.
  virtual std::vector<TierChange> TakeChanges() = 0;
};

}  // namespace pando

#endif  // PANDO_EVENTS_TIER_CHANGES_H_
