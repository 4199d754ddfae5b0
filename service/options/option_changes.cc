#include "service/options/option_changes.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "service/options/option_checks.h"
#include "service/options/option_table.h"

namespace pando {
namespace {

std::string TextOf(const OptionSpec& spec, const Options& options) {
  return IsInEffect(spec, options) ? spec.get(options) : "";
}

// Compares one list of quotas. The numbers of a quota may change while the
// server runs; other names or patterns need a restart.
template <typename Quota>
void ChangeQuotas(const std::string& list, std::string Quota::*pattern,
                  const std::vector<Quota>& given, std::vector<Quota>& quotas,
                  OptionChanges& changes) {
  if (quotas == given) return;
  const auto are_same = [&](const Quota& x, const Quota& y) {
    return x.name == y.name && x.*pattern == y.*pattern;
  };
  if (!std::equal(quotas.begin(), quotas.end(), given.begin(), given.end(),
                  are_same)) {
    changes.need_restart.push_back(list + " (other names or patterns)");
    return;
  }
  quotas = given;
  changes.live.push_back(list);
}

}  // namespace

absl::StatusOr<OptionChanges> ChangesTo(const Options& running,
                                        const Options& given) {
  OptionChanges changes{.options = running, .live = {}, .need_restart = {}};
  for (const OptionSpec& spec : OptionTable()) {
    const std::string before = TextOf(spec, running);
    const std::string after = TextOf(spec, given);
    if (before == after) continue;
    if (!spec.is_live) {
      changes.need_restart.push_back(
          absl::StrFormat("%s (%s, given %s)", spec.name, before, after));
      continue;
    }
    RETURN_IF_ERROR(spec.set(after, changes.options));
    changes.live.push_back(
        absl::StrFormat("%s (%s, now %s)", spec.name, before, after));
  }
  ChangeQuotas("quotas", &QuotaClass::pattern, given.quotas,
               changes.options.quotas, changes);
  ChangeQuotas("block_quotas", &BlockQuota::label, given.block_quotas,
               changes.options.block_quotas, changes);
  if (running.credentials != given.credentials) {
    changes.need_restart.emplace_back("credentials");
  }
  RETURN_IF_ERROR(CheckPages(changes.options));
  RETURN_IF_ERROR(CheckBlockQuotas(changes.options));
  return changes;
}

}  // namespace pando
