#include "service/memory/attach_tokens.h"

#include <sys/random.h>

#include <cerrno>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "core/errors.h"

namespace pando {

absl::StatusOr<AttachToken> AttachTokens::Issue(
    SessionId session, std::optional<UnixPeer> holder) {
  AttachToken token;
  if (getrandom(token.data(), token.size(), 0) !=
      static_cast<ssize_t>(token.size())) {
    return absl::ErrnoToStatus(errno, "getrandom");
  }
  const Clock::time_point now = Clock::now();
  absl::MutexLock lock(&mutex_);
  absl::erase_if(grants_, [now](const auto& entry) {
    return entry.second.expires <= now;
  });
  const auto own = absl::c_count_if(grants_, [session](const auto& entry) {
    return entry.second.session == session;
  });
  if (static_cast<size_t>(own) >= max_per_session_) {
    return MakeError(Reason::kSessionLimit,
                     absl::StrFormat("the session has %u attach tokens that it "
                                     "has not used; "
                                     "max-attach-tokens-per-session is %u",
                                     own, max_per_session_));
  }
  if (grants_.size() >= max_outstanding_) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%u attach tokens are outstanding; at most %u may be",
                        grants_.size(), max_outstanding_));
  }
  grants_[token] = {session, holder, now + ttl_};
  return token;
}

std::optional<SessionId> AttachTokens::Redeem(const AttachToken& token,
                                              const UnixPeer& shown_by) {
  absl::MutexLock lock(&mutex_);
  const auto found = grants_.find(token);
  if (found == grants_.end()) return std::nullopt;
  const Grant grant = found->second;
  grants_.erase(found);
  if (grant.expires <= Clock::now() ||
      grant.holder.value_or(shown_by) != shown_by) {
    return std::nullopt;
  }
  return grant.session;
}

void AttachTokens::Forget(SessionId session) {
  absl::MutexLock lock(&mutex_);
  absl::erase_if(grants_, [session](const auto& entry) {
    return entry.second.session == session;
  });
}

}  // namespace pando
