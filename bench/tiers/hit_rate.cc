// tier_hit_rate: what requests of a recorded trace find in a pool with a tier
// under it, beside pools without one. All is in this process, without bytes;
// prints JSON.

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "bench/tiers/tiered_calls.h"
#include "replay/trace.h"
#include "replay/worker.h"

namespace pando::bench {
namespace {

struct Sizes {
  uint64_t pool_tokens = 2'000'000;
  uint64_t tier_tokens = 20'000'000;
  uint32_t page_tokens = 16;
  uint32_t min_load_tokens = 256;  // as --tier-min-load-tokens

  uint32_t Pages(uint64_t tokens) const {
    return static_cast<uint32_t>(tokens / page_tokens);
  }
  // One more page than holds tokens: the padding page.
  PrefixCache::Options Pool(uint64_t tokens) const {
    return {.page_tokens = page_tokens, .capacity_pages = Pages(tokens) + 1};
  }
};

absl::StatusOr<double> HitRate(replay::CacheCalls& calls,
                               const replay::Trace& trace) {
  ASSIGN_OR_RETURN(const replay::WorkerResult result,
                   replay::Serve(calls, nullptr, trace, {}));
  return static_cast<double>(result.totals.matched_tokens) /
         static_cast<double>(result.totals.input_tokens);
}

absl::StatusOr<double> HitRateOfPool(const Sizes& sizes, uint64_t tokens,
                                     const replay::Trace& trace) {
  replay::CoreCalls calls(sizes.Pool(tokens));
  return HitRate(calls, trace);
}

absl::StatusOr<nlohmann::json> Measure(const Sizes& sizes,
                                       const std::string& path) {
  ASSIGN_OR_RETURN(const replay::Trace trace, replay::ReadTrace(path, 0));
  TieredCalls tiered(sizes.Pool(sizes.pool_tokens),
                     sizes.Pages(sizes.tier_tokens), sizes.min_load_tokens);
  ASSIGN_OR_RETURN(const double with_tier, HitRate(tiered, trace));
  ASSIGN_OR_RETURN(const double pool,
                   HitRateOfPool(sizes, sizes.pool_tokens, trace));
  ASSIGN_OR_RETURN(const double large_as_tier,
                   HitRateOfPool(sizes, sizes.tier_tokens, trace));
  ASSIGN_OR_RETURN(
      const double large_as_both,
      HitRateOfPool(sizes, sizes.pool_tokens + sizes.tier_tokens, trace));
  return nlohmann::json{{"tiered", with_tier},
                        {"loaded_tokens", tiered.loaded_tokens()},
                        {"pool", pool},
                        {"pool_large_as_tier", large_as_tier},
                        {"pool_large_as_both", large_as_both}};
}

int Main(int argc, char** argv) {
  Sizes sizes;
  std::string path;
  CLI::App app("Hit rates of a trace with and without a tier; prints JSON.");
  app.add_option("trace", path)->required()->check(CLI::ExistingFile);
  app.add_option("--pool-tokens", sizes.pool_tokens);
  app.add_option("--tier-tokens", sizes.tier_tokens);
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<nlohmann::json> measured = Measure(sizes, path);
  if (!measured.ok()) {
    std::cerr << measured.status() << "\n";
    return 1;
  }
  std::cout << measured->dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace pando::bench

int main(int argc, char** argv) { return pando::bench::Main(argc, argv); }
