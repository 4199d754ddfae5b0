#include "service/memory/attach_tokens.h"

#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "core/requests/errors.h"

namespace pando {

absl::StatusOr<AttachToken> AttachTokens::Issue(
    AttachGrant grant, std::optional<UnixPeer> holder) {
  AttachToken token;
  if (getrandom(token.data(), token.size(), 0) !=
      static_cast<ssize_t>(token.size())) {
    return absl::ErrnoToStatus(errno, "getrandom");
  }
  absl::MutexLock lock(&mutex_);
  const SessionId session = grant.session;
  IssuedTokens& own = sessions_[session];
  if (own.size() >= max_per_session_) DropExpired(own);
  if (own.size() >= max_per_session_) {
    return MakeError(Reason::kSessionLimit,
                     absl::StrFormat("the session has %u attach tokens that it "
                                     "has not used; "
                                     "max-attach-tokens-per-session is %u",
                                     own.size(), max_per_session_));
  }
  own[token] = {std::move(grant), holder, Clock::now() + ttl_};
  owners_[token] = session;
  return token;
}

void AttachTokens::DropExpired(IssuedTokens& tokens) {
  const Clock::time_point now = Clock::now();
  // This is a loop, because clang's analysis of locks does not look into
  // lambdas.
  for (auto token = tokens.begin(); token != tokens.end();) {
    const auto here = token++;
    if (here->second.expires > now) continue;
    owners_.erase(here->first);
    tokens.erase(here);
  }
}

std::optional<AttachGrant> AttachTokens::Redeem(const AttachToken& token,
                                                const UnixPeer& shown_by) {
  absl::MutexLock lock(&mutex_);
  const auto owner = owners_.find(token);
  if (owner == owners_.end()) return std::nullopt;
  const auto own = sessions_.find(owner->second);
  Issued issued = std::move(own->second.at(token));
  own->second.erase(token);
  if (own->second.empty()) sessions_.erase(own);
  owners_.erase(owner);
  if (issued.expires <= Clock::now() ||
      issued.holder.value_or(shown_by) != shown_by) {
    return std::nullopt;
  }
  return std::move(issued.grant);
}

bool AttachTokens::HasTokenFor(const UnixPeer& peer) {
  const Clock::time_point now = Clock::now();
  absl::MutexLock lock(&mutex_);
  return absl::c_any_of(sessions_, [&](const auto& session) {
    return absl::c_any_of(session.second, [&](const auto& entry) {
      const Issued& issued = entry.second;
      return issued.expires > now && issued.holder.value_or(peer) == peer;
    });
  });
}

void AttachTokens::Forget(SessionId session) {
  absl::MutexLock lock(&mutex_);
  const auto own = sessions_.find(session);
  if (own == sessions_.end()) return;
  for (const auto& [token, issued] : own->second) owners_.erase(token);
  sessions_.erase(own);
}

}  // namespace pando
