#include "service/console/session_json.h"

#include <optional>

#include "absl/container/flat_hash_map.h"

namespace pando {
namespace {

using nlohmann::json;

json NamesOf(const Forest& forest, const std::vector<Forest::Index>& path) {
  json names = json::array();
  for (const Forest::Index index : path) names.push_back(forest.NameOf(index));
  return names;
}

json LockJson(const LockInfo& lock, const Forest& forest) {
  const std::optional<Forest::Index> node = forest.FindNode(lock.node);
  return {{"namespace", lock.ns.value()},
          {"locked_tokens", lock.locked_tokens},
          {"age_s", absl::ToDoubleSeconds(lock.age)},
          {"path", node.has_value() ? NamesOf(forest, forest.PathTo(*node))
                                    : json::array()}};
}

}  // namespace

json SessionsJson(const SessionList& sessions, const LockList& locks) {
  absl::flat_hash_map<SessionNumber, double> oldest;
  for (const LockInfo& lock : locks.locks) {
    oldest.try_emplace(lock.session, absl::ToDoubleSeconds(lock.age));
  }
  json list = json::array();
  for (const SessionInfo& session : sessions.sessions) {
    json& out =
        list.emplace_back(json{{"number", session.number.value()},
                               {"client_name", session.client_name},
                               {"is_connected", session.is_connected},
                               {"is_attached", session.is_attached},
                               {"locks", session.locks},
                               {"reserved_pages", session.reserved_pages},
                               {"age_s", absl::ToDoubleSeconds(session.age)}});
    const auto lock = oldest.find(session.number);
    if (lock != oldest.end()) out["oldest_lock_s"] = lock->second;
  }
  return {{"sessions", std::move(list)}, {"total", sessions.total}};
}

json LocksJson(const LockList& locks, const Forest& forest) {
  json list = json::array();
  for (const LockInfo& lock : locks.locks) {
    list.push_back(LockJson(lock, forest));
  }
  return {{"locks", std::move(list)}, {"total", locks.total}};
}

}  // namespace pando
