#include "service/memory/attach_tokens.h"

#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "core/errors.h"

namespace pando {

absl::StatusOr<AttachToken> AttachTokens::Issue(
    AttachGrant grant, std::optional<UnixPeer> holder) {
  AttachToken token;
  if (getrandom(token.data(), token.size(), 0) !=
      static_cast<ssize_t>(token.size())) {
    return absl::ErrnoToStatus(errno, "getrandom");
  }
  const Clock::time_point now = Clock::now();
  absl::MutexLock lock(&mutex_);
  absl::erase_if(issued_, [now](const auto& entry) {
    return entry.second.expires <= now;
  });
  const auto own = absl::c_count_if(issued_, [&grant](const auto& entry) {
    return entry.second.grant.session == grant.session;
  });
  if (static_cast<size_t>(own) >= max_per_session_) {
    return MakeError(Reason::kSessionLimit,
                     absl::StrFormat("the session has %u attach tokens that it "
                                     "has not used; "
                                     "max-attach-tokens-per-session is %u",
                                     own, max_per_session_));
  }
  if (issued_.size() >= max_outstanding_) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%u attach tokens are outstanding; at most %u may be",
                        issued_.size(), max_outstanding_));
  }
  issued_[token] = {std::move(grant), holder, now + ttl_};
  return token;
}

std::optional<AttachGrant> AttachTokens::Redeem(const AttachToken& token,
                                                const UnixPeer& shown_by) {
  absl::MutexLock lock(&mutex_);
  const auto found = issued_.find(token);
  if (found == issued_.end()) return std::nullopt;
  Issued issued = std::move(found->second);
  issued_.erase(found);
  if (issued.expires <= Clock::now() ||
      issued.holder.value_or(shown_by) != shown_by) {
    return std::nullopt;
  }
  return std::move(issued.grant);
}

void AttachTokens::Forget(SessionId session) {
  absl::MutexLock lock(&mutex_);
  absl::erase_if(issued_, [session](const auto& entry) {
    return entry.second.grant.session == session;
  });
}

}  // namespace pando
