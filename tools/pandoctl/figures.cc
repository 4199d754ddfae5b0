#include "tools/pandoctl/figures.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/visible_text.h"
#include "tools/pandoctl/style.h"

namespace pando::ctl {

std::string Counted(uint64_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string AgeText(uint64_t ms) {
  const absl::Duration age = absl::Milliseconds(ms);
  if (age < absl::Seconds(1)) return absl::StrCat(ms, "ms");
  return absl::FormatDuration(absl::Trunc(age, absl::Seconds(1)));
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  const int decimals = unit == 0 ? 0 : 1;
  return absl::StrFormat("%.*f %s", decimals, amount, kUnits[unit]);
}

std::string PercentText(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat(
      "%.1f", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string HealthText(const std::string& status) {
  return Styled(status == "SERVING" ? Style::kGood : Style::kBad, status);
}

std::string NameText(const std::string& name) {
  return name.empty() ? "\"\"" : VisibleText(absl::Utf8SafeCEscape(name));
}

std::string KeyText(const v1::NamespaceInfo& ns) {
  return ns.has_extra_key() ? NameText(ns.extra_key()) : "-";
}

std::string ReasonText(v1::EvictionReason reason) {
  const std::string name = v1::EvictionReason_Name(reason);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "EVICTION_REASON_"));
}

std::string TierName(v1::Tier tier) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Tier_Name(tier), "TIER_"));
}

std::string PagesText(const v1::PageStates& pages) {
  return absl::StrFormat(
      "%d free, %d reserved, %d evictable, %d protected, %d quarantined, "
      "%d padding",
      pages.free(), pages.reserved(), pages.evictable(), pages.protected_(),
      pages.quarantined(), pages.padding());
}

}  // namespace pando::ctl
