// pandoctl namespaces, sessions, kinds, locks, quarantine: who is there, and
// who holds what.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/pandoctl/confirm.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/numbers.h"
#include "tools/pandoctl/tables.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

// The line under a list that was cut off: how long the whole is.
std::string Remark(int listed, uint32_t total) {
  if (static_cast<uint32_t>(listed) == total) return "";
  return absl::StrCat(listed, " of ", total, "\n");
}

absl::Status ReleaseLocks(const Context& context, uint32_t session) {
  RETURN_IF_ERROR(
      Confirm(context, absl::StrCat("Take all locks from session ", session,
                                    ", which may be using them?")));
  v1::ReleaseLocksRequest request;
  request.set_session_number(session);
  ASSIGN_OR_RETURN(const auto answer, context.server.Ask(request));
  if (context.output.is_table()) {
    context.output.Print(absl::StrCat(
        "released ", Counted(answer.released_locks(), "lock"), "\n"));
  } else {
    context.output.Print(answer);
  }
  return absl::OkStatus();
}

absl::Status FreeQuarantine(const Context& context, uint32_t session) {
  RETURN_IF_ERROR(Confirm(
      context, absl::StrCat("Give up the pages of session ", session,
                            "? A process that still writes to them will "
                            "overwrite what others put there.")));
  v1::FreeQuarantineRequest request;
  request.set_session_number(session);
  ASSIGN_OR_RETURN(const auto answer, context.server.Ask(request));
  if (context.output.is_table()) {
    context.output.Print(
        absl::StrCat("freed ", Counted(answer.freed_pages(), "page"), "\n"));
  } else {
    context.output.Print(answer);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Namespaces(const Context& context) {
  ASSIGN_OR_RETURN(
      const auto list,
      context.server.List<v1::ListNamespacesRequest>(context.options.limit));
  if (context.output.is_table()) {
    context.output.Print(NamespaceTable(list.namespaces()) +
                         Remark(list.namespaces_size(), list.total()));
  } else {
    context.output.Print(list);
  }
  return absl::OkStatus();
}

absl::Status Sessions(const Context& context) {
  ASSIGN_OR_RETURN(
      const auto list,
      context.server.List<v1::ListSessionsRequest>(context.options.limit));
  if (context.output.is_table()) {
    context.output.Print(SessionTable(list.sessions()) +
                         Remark(list.sessions_size(), list.total()));
  } else {
    context.output.Print(list);
  }
  return absl::OkStatus();
}

absl::Status Kinds(const Context& context) {
  ASSIGN_OR_RETURN(const auto list, context.server.List<v1::ListKindsRequest>(
                                        context.options.limit));
  if (context.output.is_table()) {
    context.output.Print(KindTable(list.kinds()) +
                         Remark(list.kinds_size(), list.total()));
  } else {
    context.output.Print(list);
  }
  return absl::OkStatus();
}

absl::Status Locks(const Context& context) {
  const Options& options = context.options;
  if (options.release_session.has_value()) {
    return ReleaseLocks(context, *options.release_session);
  }
  if (options.session_number.has_value()) {
    RETURN_IF_ERROR(CheckSession(context.server, *options.session_number));
  }
  v1::ListLocksRequest request;
  request.set_limit(options.limit);
  request.set_session_number(options.session_number.value_or(0));
  ASSIGN_OR_RETURN(const auto list, context.server.Ask(request));
  if (context.output.is_table()) {
    context.output.Print(LockTable(list.locks()) +
                         Remark(list.locks_size(), list.total()));
  } else {
    context.output.Print(list);
  }
  return absl::OkStatus();
}

absl::Status Quarantine(const Context& context) {
  const Options& options = context.options;
  if (options.free_session.has_value()) {
    return FreeQuarantine(context, *options.free_session);
  }
  ASSIGN_OR_RETURN(
      const auto list,
      context.server.List<v1::ListQuarantineRequest>(options.limit));
  if (context.output.is_table()) {
    context.output.Print(QuarantineTable(list.sessions()) +
                         Remark(list.sessions_size(), list.total()));
  } else {
    context.output.Print(list);
  }
  return absl::OkStatus();
}

}  // namespace pando::ctl
