#ifndef PANDO_BENCH_TIERS_TIERED_CALLS_H_
#define PANDO_BENCH_TIERS_TIERED_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/nodes/page_hash.h"
#include "core/requests/namespace_key.h"
#include "replay/core_calls.h"
#include "tiers/local/tier_index.h"

namespace pando::bench {

// A cache in this process with the index of a tier under it: what requests
// would find if loads and stores took no time. It has no bytes. Does what
// TierLoads and TierStores do for a caller who waits, with a limit on the tier
// alone.
class TieredCalls final : public replay::CoreCalls {
 public:
  // Fewer than `min_load_tokens` tokens are not loaded.
  TieredCalls(const PrefixCache::Options& options, uint32_t tier_pages,
              uint32_t min_load_tokens);

  absl::StatusOr<std::optional<replay::Admission>> Admit(
      std::span<const Token> prompt,
      const replay::AdmitOptions& options) override;
  absl::StatusOr<replay::Handle> Finish(bool has_ended) override;

  uint64_t loaded_tokens() const { return loaded_tokens_; }

 private:
  void HashPages(std::span<const Token> prompt);
  absl::Status Load(std::span<const Token> prompt);
  void Store();

  const uint32_t min_load_tokens_;
  const NamespaceKey ns_;
  PageHasher hasher_;
  TierIndex tier_;
  std::vector<PageHash> hashes_;  // of the admitted prompt
  uint64_t loaded_tokens_ = 0;
};

}  // namespace pando::bench

#endif  // PANDO_BENCH_TIERS_TIERED_CALLS_H_
