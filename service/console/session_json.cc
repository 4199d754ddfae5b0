#include "service/console/session_json.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

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

json SessionJson(const SessionInfo& session) {
  return {{"number", session.number.value()},
          {"client_name", session.client_name},
          {"is_connected", session.is_connected},
          {"is_attached", session.is_attached},
          {"is_internal", session.is_internal},
          {"locks", session.locks},
          {"reserved_pages", session.reserved_pages},
          {"locked_blocks", session.locked_blocks},
          {"reserved_blocks", session.reserved_blocks},
          {"steps", session.steps},
          {"age_s", absl::ToDoubleSeconds(session.age)}};
}

// How much a session holds. A lock counts as much as a page or a block: it
// matters less which of two sessions holds more than that sessions which hold
// something come first.
uint64_t Held(const SessionInfo& session) {
  return uint64_t{session.locks} + session.reserved_pages +
         session.locked_blocks + session.reserved_blocks;
}

bool IsCalled(const SessionInfo& session, const std::string& lower_text) {
  return lower_text.empty() ||
         absl::StrCat(session.number.value()) == lower_text ||
         absl::StrContains(absl::AsciiStrToLower(session.client_name),
                           lower_text);
}

// Returns the sessions that `text` finds: those that hold most first, and among
// equals, those whose calls have taken most steps.
std::vector<const SessionInfo*> Called(const std::string& text,
                                       const SessionList& sessions) {
  const std::string lower_text = absl::AsciiStrToLower(text);
  std::vector<const SessionInfo*> called;
  for (const SessionInfo& session : sessions.sessions) {
    if (IsCalled(session, lower_text)) called.push_back(&session);
  }
  std::ranges::stable_sort(called, std::ranges::greater(),
                           [](const SessionInfo* each) {
                             return std::pair(Held(*each), each->steps);
                           });
  return called;
}

}  // namespace

uint32_t InternalSessions(const SessionList& sessions) {
  return static_cast<uint32_t>(
      std::ranges::count_if(sessions.sessions, &SessionInfo::is_internal));
}

json SessionsJson(const SessionList& sessions, const LockList& locks,
                  const std::string& text, size_t limit) {
  absl::flat_hash_map<SessionNumber, double> oldest;
  for (const LockInfo& lock : locks.locks) {
    oldest.try_emplace(lock.session, absl::ToDoubleSeconds(lock.age));
  }
  json list = json::array();
  const std::vector<const SessionInfo*> called = Called(text, sessions);
  for (const SessionInfo* session :
       std::span(called).first(std::min(limit, called.size()))) {
    json& out = list.emplace_back(SessionJson(*session));
    const auto lock = oldest.find(session->number);
    if (lock != oldest.end()) out["oldest_lock_s"] = lock->second;
  }
  return {{"sessions", std::move(list)},
          {"total", sessions.total},
          {"internal", InternalSessions(sessions)},
          {"called", called.size()}};
}

json LocksJson(const LockList& locks, const Forest& forest) {
  json list = json::array();
  for (const LockInfo& lock : locks.locks) {
    list.push_back(LockJson(lock, forest));
  }
  return {{"locks", std::move(list)}, {"total", locks.total}};
}

}  // namespace pando
