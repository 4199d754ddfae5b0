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

// A tier as TierStores sees it. It knows nothing of the cache: its caller sees
// to it that the pages stay as they are. One thread stores; all else is
// thread-safe.
class StoreTarget {
 public:
  virtual ~StoreTarget() = default;

  // No prompt of more pages fits.
  virtual size_t capacity_pages() const = 0;
  // How many pages are stored by one call at most.
  virtual size_t max_pages_per_store() const = 0;
  // How many pages at the front of `run` it is known to have.
  virtual size_t CountStored(std::span<const PageHash> run) const = 0;
  // Whether it has all of a prompt, which is in use now. Does no I/O.
  virtual bool TouchIfStored(std::span<const PageHash> prompt) = 0;
  // Before what is missing of a prompt is stored, on the thread that stores.
  virtual void BeginPrompt(uint64_t ns_digest,
                           std::span<const PageHash> prompt) = 0;
  // Copies the pages `begin` and following of a prompt in a namespace, as far
  // as they are not there. `confirm` is called after that, and says whether the
  // pages were locked all the time; if not, nothing is stored.
  virtual void Store(uint64_t ns_digest, std::span<const PageHash> prompt,
                     size_t begin, std::span<const PageId> pages,
                     const std::function<bool()>& confirm) = 0;
  // Waits for what of the prompt is still on its way.
  virtual void EndPrompt() {}
  // A prompt is in use, of which it may have something: who follows what it has
  // can be told what that is.
  virtual void Tell(const HashedPrompt&) {}
  virtual void CountDropped(uint64_t pages) = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_STORE_TARGET_H_
