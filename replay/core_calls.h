#ifndef PANDO_REPLAY_CORE_CALLS_H_
#define PANDO_REPLAY_CORE_CALLS_H_

#include <string>
#include <vector>

#include "core/prefix_cache.h"
#include "replay/accounts.h"
#include "replay/cache_calls.h"

namespace pando::replay {

// Makes the calls of a request on a cache of its own, in this process.
class CoreCalls : public CacheCalls {
 public:
  explicit CoreCalls(const PrefixCache::Options& options);

  uint32_t page_tokens() const override { return cache_.page_tokens(); }
  absl::StatusOr<std::optional<Admission>> Admit(
      std::span<const Token> prompt, const AdmitOptions& options) override;
  absl::StatusOr<Handle> Finish(bool has_ended) override;

  // Returns the cache's figures, without Accounts::matches. Checks the
  // invariants of the cache.
  Accounts TakeAccounts();

 protected:
  PrefixCache& cache() { return cache_; }

 private:
  const NamespaceKey ns_;
  PrefixCache cache_;
  // The admitted request.
  uint32_t prompt_tokens_ = 0;
  uint32_t output_tokens_ = 0;
  MatchResult match_;
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_CORE_CALLS_H_
