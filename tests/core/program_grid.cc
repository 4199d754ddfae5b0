#include "tests/core/program_grid.h"

#include <utility>

namespace pando::program {

std::ostream& operator<<(std::ostream& out, const GridPoint& point) {
  return out << EvictionPolicyName(point.policy) << ", " << point.page_tokens
             << " tokens a page, " << point.capacity_pages << " pages"
             << (point.is_bigram ? ", bigram" : "")
             << (point.has_quotas ? ", quotas" : "")
             << (point.has_limits ? ", limits" : "")
             << (point.learns_always ? ", learns always" : "");
}

GridPoint AnyGridPoint(const Choices& choices) {
  return {.policy = kPolicies[choices(kPolicies.size())],
          .page_tokens = kPageSizes[choices(kPageSizes.size())],
          .is_bigram = choices(2) == 1,
          .has_quotas = choices(2) == 1,
          .capacity_pages = 2 + choices(46),
          .has_limits = choices(3) == 1,
          .learns_always = choices(4) == 1};
}

// Makes the options for a point. The classes match patterns of extra_key; see
// NamespaceOf. The first class is that of namespaces without an extra_key.
PrefixCache::Options OptionsAt(const GridPoint& point) {
  const uint32_t pages = point.capacity_pages;
  PrefixCache::Options options{
      .page_tokens = point.page_tokens,
      .capacity_pages = pages,
      .eviction_policy = point.policy,
      .reuse = {.learns_always = point.learns_always, .warmup_ticks = 8},
      .low_free_pages = pages / 6,
      .high_free_pages = pages / 3,
      .first_told_hit = 1};
  if (point.has_quotas) {
    options.quota_classes = {
        {.name = "most",
         .pattern = "",
         .floor_pages = pages / 6,
         .cap_pages = pages * 2 / 3,
         .max_retention_seconds = 5},
        {.name = "sure",
         .pattern = "b*",
         .floor_pages = pages / 4,
         .max_retention_seconds = 2},
        {.name = "small", .pattern = "d*", .cap_pages = 0}};
  }
  if (point.has_limits) {
    options.session_limits = {
        .max_locks = 3,
        .max_reserved_pages = pages / 3,
        // Room for some answers, which take ever more of the limit.
        .max_kept_bytes = 20 * Answers::kAnswerBytes +
                          pages / 3 * point.page_tokens * sizeof(Token)};
  }
  return options;
}

RandomOperations OperationsAt(const GridPoint& point, Choices choices) {
  return RandomOperations(std::move(choices), point.page_tokens,
                          point.is_bigram ? 4 : 0);
}

}  // namespace pando::program
