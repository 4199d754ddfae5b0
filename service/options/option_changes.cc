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

bool HaveSameClasses(const std::vector<QuotaClass>& a,
                     const std::vector<QuotaClass>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const QuotaClass& x, const QuotaClass& y) {
                      return x.name == y.name && x.pattern == y.pattern;
                    });
}

// Compares the quota classes. The numbers of a class may change while the
// server runs; other classes need a restart.
void ChangeQuotas(const std::vector<QuotaClass>& given,
                  OptionChanges& changes) {
  std::vector<QuotaClass>& quotas = changes.options.quotas;
  if (quotas == given) return;
  if (!HaveSameClasses(quotas, given)) {
    changes.need_restart.emplace_back("quotas (other classes)");
    return;
  }
  quotas = given;
  changes.live.emplace_back("quotas");
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
  ChangeQuotas(given.quotas, changes);
  if (running.credentials != given.credentials) {
    changes.need_restart.emplace_back("credentials");
  }
  RETURN_IF_ERROR(CheckPages(changes.options));
  return changes;
}

}  // namespace pando
