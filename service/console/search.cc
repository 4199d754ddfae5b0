#include "service/console/search.h"

#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "service/console/forest_json.h"

namespace pando {
namespace {

using nlohmann::json;

constexpr size_t kMaxFound = 20;

bool IsCalled(const std::optional<std::string>& name, const std::string& text) {
  return name.has_value() && absl::StrContains(absl::AsciiStrToLower(*name),
                                               absl::AsciiStrToLower(text));
}

}  // namespace

json SearchJson(const std::string& text, const Forest& forest,
                const SessionList& sessions) {
  json found = json::array();
  uint64_t number = 0;
  const bool is_number = absl::SimpleAtoi(text, &number);
  if (is_number && forest.FindNode(number).has_value()) {
    found.push_back(
        {{"node", number}, {"name", absl::StrCat("node-", number)}});
  }
  for (const NamespaceCopy& ns : forest.namespaces()) {
    if (found.size() == kMaxFound) break;
    if (!(is_number && ns.number.value() == number) &&
        !IsCalled(ns.key->extra_key, text)) {
      continue;
    }
    found.push_back({{"namespace", NamespaceJson(ns)},
                     {"name", absl::StrCat("namespace-", ns.number.value())}});
  }
  for (const SessionInfo& session : sessions.sessions) {
    if (found.size() == kMaxFound) break;
    if ((is_number && session.number.value() == number) ||
        IsCalled(session.client_name, text)) {
      found.push_back({{"session", session.number.value()},
                       {"client_name", session.client_name}});
    }
  }
  return {{"found", std::move(found)}};
}

}  // namespace pando
