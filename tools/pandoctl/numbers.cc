#include "tools/pandoctl/numbers.h"

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace pando::ctl {
namespace {

// The most that pandod lists.
constexpr uint32_t kLimit = 100'000;

absl::Status NotFound(const char* kind, uint64_t number) {
  return absl::NotFoundError(absl::StrFormat(
      "there is no %s %d; 'pandoctl %ss' lists them", kind, number, kind));
}

}  // namespace

absl::Status CheckNamespace(Server& server, uint64_t number) {
  ASSIGN_OR_RETURN(const v1::ListNamespacesResponse list,
                   server.List<v1::ListNamespacesRequest>(kLimit));
  for (const v1::NamespaceInfo& ns : list.namespaces()) {
    if (ns.number() == number) return absl::OkStatus();
  }
  const bool is_whole =
      static_cast<uint32_t>(list.namespaces_size()) == list.total();
  return is_whole ? NotFound("namespace", number) : absl::OkStatus();
}

absl::Status CheckSession(Server& server, uint32_t number) {
  ASSIGN_OR_RETURN(const v1::ListSessionsResponse list,
                   server.List<v1::ListSessionsRequest>(kLimit));
  for (const v1::SessionInfo& session : list.sessions()) {
    if (session.session_number() == number) return absl::OkStatus();
  }
  const bool is_whole =
      static_cast<uint32_t>(list.sessions_size()) == list.total();
  return is_whole ? NotFound("session", number) : absl::OkStatus();
}

}  // namespace pando::ctl
