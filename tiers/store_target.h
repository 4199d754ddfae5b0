#ifndef PANDO_TIERS_STORE_TARGET_H_
#define PANDO_TIERS_STORE_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/ids.h"
#include "core/nodes/page_hash.h"
#include "core/requests/namespace_key.h"

namespace pando {

// A prompt, or its beginning, with the hashes of its pages.
struct HashedPrompt {
  const NamespaceKey& ns;
  std::span<const Token> tokens;
  std::span<const PageHash> hashes;
  uint32_t page_tokens;
};

// A tier as TierStores sees it. It knows nothing of the cache: the caller keeps
// pages unchanged while they are copied. One thread calls BeginPrompt, Store
// and EndPrompt; the other methods are thread-safe.
class StoreTarget {
 public:
  virtual ~StoreTarget() = default;

  // The most pages of one prompt that fit into the tier.
  virtual size_t capacity_pages() const = 0;
  // The most pages that one call of Store takes.
  virtual size_t max_pages_per_store() const = 0;
  // Returns how many pages at the front of `run` the tier is known to have.
  virtual size_t CountStored(std::span<const PageHash> run) const = 0;
  // Returns whether the tier has all pages of a prompt; if so, counts this as a
  // use of them. Does no I/O.
  virtual bool TouchIfStored(std::span<const PageHash> prompt) = 0;
  // Must be called before the missing pages of a prompt are stored, on the
  // thread that stores. Counts as a use of the pages that the tier has.
  virtual void BeginPrompt(uint64_t ns_digest,
                           std::span<const PageHash> prompt) = 0;
  // Stores those of `pages` that the tier does not have. They are the pages of
  // `prompt` from index `begin` on, at most max_pages_per_store() of them.
  // Calls `confirm` once the pages need not stay locked any more; it returns
  // whether they were locked until then. If it returns false, nothing is
  // stored.
  virtual void Store(uint64_t ns_digest, std::span<const PageHash> prompt,
                     size_t begin, std::span<const PageId> pages,
                     const std::function<bool()>& confirm) = 0;
  // Waits until the pages that were given to Store are stored, or have failed.
  virtual void EndPrompt() {}
  // Says that a prompt is in use. A tier that reports its changes (TierChanges)
  // now reports the pages of the prompt that it has and has not reported yet:
  // only here it learns their tokens.
  virtual void Tell(const HashedPrompt&) {}
  // Adds to TierFigures::dropped_pages.
  virtual void CountDropped(uint64_t pages) = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_STORE_TARGET_H_
