#ifndef PANDO_CORE_OPERATORS_EVICTION_WORK_H_
#define PANDO_CORE_OPERATORS_EVICTION_WORK_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "base/ids.h"
#include "core/parts/stepped_work.h"
#include "core/requests/namespace_key.h"
#include "core/requests/requests.h"

namespace pando {

// Evicts up to `pages` pages in the order of the policy, but takes no class
// below its floor.
class EvictionWork : public SteppedWork {
 public:
  explicit EvictionWork(uint32_t pages) : pages_(pages) {}

  bool Step(CacheParts& parts) override;
  std::optional<Operation> operation() const override {
    return Operation::kEvict;
  }
  uint32_t evicted_pages() const { return evicted_pages_; }

 private:
  const uint32_t pages_;
  uint32_t evicted_pages_ = 0;
};

// Evicts everything that is not locked, in one namespace or in all, even below
// the floors. It goes through the nodes once, and evicts what was cached when
// it began and is unlocked when its turn comes. A prefix that another call
// inserts or extends meanwhile may stay.
class FlushWork : public SteppedWork {
 public:
  FlushWork() = default;
  explicit FlushWork(NamespaceKey ns) : is_all_(false), key_(std::move(ns)) {}
  explicit FlushWork(NamespaceNumber ns) : is_all_(false), ns_(ns) {}

  bool Step(CacheParts& parts) override;
  // REQUIRES: the last Step returned true.
  const FlushResult& result() const { return result_; }
  bool is_all() const { return is_all_; }
  // The namespace that was flushed; none if it was named by a number and
  // nothing was cached in it. REQUIRES: the last Step returned true, and not
  // is_all().
  const std::optional<NamespaceKey>& ns() const { return key_; }

 private:
  // Whether nothing is cached in the namespace to flush. Finds out its number
  // or key.
  bool FindsNothing(const RadixTree& tree);

  bool is_all_ = true;
  std::optional<NamespaceKey> key_;
  // Unset: all namespaces, or not known yet.
  std::optional<NamespaceNumber> ns_;
  uint32_t next_ = 0;  // the cell of the next node
  // A cell before it whose turn is not over.
  std::optional<uint32_t> rest_;
  FlushResult result_;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_EVICTION_WORK_H_
