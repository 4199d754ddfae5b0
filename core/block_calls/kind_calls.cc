#include "core/block_calls/kind_calls.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"

namespace pando {

KindCall::KindCall(SessionId session, size_t count)
    : session_id_(session), count_(count) {
  kinds_.reserve(std::min(count, kMaxKindsOfCall));
}

bool KindCall::Step(CacheParts& parts) {
  status_ = TryStep(parts);
  return true;
}

absl::StatusOr<std::vector<BlockKind>> KindCall::Take() {
  RETURN_IF_ERROR(status_);
  return std::move(kinds_);
}

absl::Status KindCall::TryStep(CacheParts& parts) {
  ASSIGN_OR_RETURN(Session* const session, GetBlockSession(parts, session_id_));
  if (count_ > kMaxKindsOfCall) {
    return MakeError(Reason::kInvalidField, Subject::kKinds,
                     absl::StrCat("are ", count_, "; the limit is ",
                                  kMaxKindsOfCall, " in a call"));
  }
  RETURN_IF_ERROR(Check(parts, *session));
  RETURN_IF_ERROR(
      parts.sessions.CheckMoreBytes(*session, count_ * kOpenKindBytes));
  Do(parts, *session);
  parts.sessions.CountBlockBytes(*session);
  return absl::OkStatus();
}

void KindCall::Open(Session& session, Kind& kind) {
  KindTable::Open(session.blocks->kinds, kind);
  kinds_.push_back(kind.info);
}

absl::Status KindCall::CheckMayOpen(const Session& session, size_t more) {
  const size_t open = session.blocks->kinds.size();
  if (open + more <= kMaxKindsOfSession) return absl::OkStatus();
  return MakeError(
      Reason::kSessionLimit, Subject::kKinds,
      absl::StrCat(more, " more kinds are named, and the session has ", open,
                   " open; the limit is ", kMaxKindsOfSession));
}

void KindOpening::Prepare() {
  absl::flat_hash_map<KindName, const KindSpec*> first;
  for (size_t i = 0; i < specs_.size() && agreement_.ok(); ++i) {
    const KindSpec& spec = specs_[i];
    const auto [known, is_first] =
        first.try_emplace(KindName{spec.ns, spec.identity}, &spec);
    if (!is_first) agreement_ = KindTable::CheckAgree(spec, *known->second, i);
  }
}

absl::Status KindOpening::Check(const CacheParts& parts,
                                const Session& session) const {
  RETURN_IF_ERROR(agreement_);
  const KindTable& kinds = parts.blocks.kinds();
  size_t more = 0;
  size_t more_open = 0;
  for (size_t i = 0; i < specs_.size(); ++i) {
    RETURN_IF_ERROR(kinds.Check(specs_[i], i));
    const Kind* const kind =
        kinds.Find(KindName{specs_[i].ns, specs_[i].identity});
    more += kind == nullptr;
    more_open += !IsOpen(session, kind);
  }
  RETURN_IF_ERROR(CheckMayOpen(session, more_open));
  return kinds.CheckRoom(more);
}

void KindOpening::Do(CacheParts& parts, Session& session) {
  for (const KindSpec& spec : specs_) {
    Open(session, parts.blocks.kinds().FindOrMake(spec));
  }
}

absl::Status KindSearch::Check(const CacheParts& parts,
                               const Session& session) const {
  size_t more = 0;
  for (const KindName& name : names_) {
    const Kind* const kind = parts.blocks.kinds().Find(name);
    more += kind != nullptr && !IsOpen(session, kind);
  }
  return CheckMayOpen(session, more);
}

void KindSearch::Do(CacheParts& parts, Session& session) {
  for (const KindName& name : names_) {
    Kind* const kind = parts.blocks.kinds().Find(name);
    if (kind != nullptr) {
      Open(session, *kind);
    } else {
      kinds_.emplace_back();
    }
  }
}

absl::Status KindReset::Check(const CacheParts& parts,
                              const Session& session) const {
  for (KindNumber number : numbers_) {
    RETURN_IF_ERROR(OpenKindOf(parts, session, number).status());
  }
  return parts.blocks.kinds().CheckRoom(numbers_.size());
}

// If the call names a number twice, the second time it is not the newest
// generation any more, and nothing new is made.
void KindReset::Do(CacheParts& parts, Session& session) {
  KindTable& kinds = parts.blocks.kinds();
  for (KindNumber number : numbers_) {
    Kind& kind = *kinds.Find(number);
    if (kind.is_newest) kinds.Renew(kind);
    const KindSpec& spec = kind.info.spec;
    Open(session, *kinds.Find(KindName{spec.ns, spec.identity}));
    kinds.Close(session.blocks->kinds, kind);
  }
}

}  // namespace pando
