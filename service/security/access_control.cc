#include "service/security/access_control.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"
#include "os/logging/log.h"

namespace pando {
namespace {

constexpr size_t kOwnersKept = 1024;
constexpr std::string_view kBearer = "Bearer ";

// Returns whether the certificate of `call` has this name: as one of its
// alternative names or, if it has none, as its common name.
bool HasCertificateName(const grpc::ServerContext& call,
                        const std::string& name) {
  for (const grpc::string_ref& known : call.auth_context()->GetPeerIdentity()) {
    if (std::string_view(known.data(), known.size()) == name) return true;
  }
  return false;
}

absl::Status NoCredential(std::string_view why) {
  return MakeError(Reason::kNoCredential, why);
}

}  // namespace

std::string NameOf(const Caller& caller) {
  return caller.peer.has_value() ? NameOf(*caller.peer) : caller.connection;
}

absl::StatusOr<std::unique_ptr<AccessControl>> AccessControl::Create(
    std::vector<Credential> credentials, IsLive is_live) {
  auto control = absl::WrapUnique(
      new AccessControl(std::move(credentials), std::move(is_live)));
  absl::MutexLock lock(&control->tokens_mutex_);
  for (std::optional<TokenFile>& file : control->token_files_) {
    if (!file.has_value()) continue;
    RETURN_IF_ERROR(file->Refresh().status());
  }
  return control;
}

AccessControl::AccessControl(std::vector<Credential> credentials,
                             IsLive is_live)
    : credentials_(std::move(credentials)),
      is_live_(std::move(is_live)),
      forget_at_(kOwnersKept) {
  for (const Credential& credential : credentials_) {
    std::optional<TokenFile>& file = token_files_.emplace_back();
    if (!credential.token_file.empty()) file.emplace(credential.token_file);
  }
}

bool AccessControl::RefreshTokens() {
  bool have_changed = false;
  absl::MutexLock lock(&tokens_mutex_);
  for (std::optional<TokenFile>& file : token_files_) {
    if (!file.has_value()) continue;
    const absl::StatusOr<bool> is_new = file->Refresh();
    if (is_new.ok()) {
      have_changed |= *is_new;
    } else {
      Log(LogLevel::kError, "tokens stay as they are",
          {{"error", is_new.status().message()}});
    }
  }
  return have_changed;
}

bool AccessControl::AdmitsToken(const Permission& needed,
                                std::string_view token) const {
  const Credential* const credential = ByToken(token);
  return credential != nullptr &&
         CheckRole(*credential, needed, *needed.role).ok();
}

absl::StatusOr<const Credential*> AccessControl::Identify(
    const Caller& caller) const {
  if (!caller.authorization.has_value()) {
    if (const Credential* found = ByTransport(caller)) return found;
    return NoCredential(
        "no credential fits the caller, who has shown no bearer token");
  }
  std::string_view token = *caller.authorization;
  if (!token.starts_with(kBearer)) {
    return NoCredential("authorization is not a bearer token");
  }
  token.remove_prefix(kBearer.size());
  if (const Credential* found = ByToken(token)) return found;
  return NoCredential("the bearer token is not known here");
}

const Credential* AccessControl::ByToken(std::string_view token) const {
  absl::ReaderMutexLock lock(&tokens_mutex_);
  for (size_t i = 0; i < credentials_.size(); ++i) {
    if (token_files_[i].has_value() && token_files_[i]->Has(token)) {
      return &credentials_[i];
    }
  }
  return nullptr;
}

const Credential* AccessControl::ByTransport(const Caller& caller) const {
  for (const Credential& credential : credentials_) {
    if (caller.peer.has_value()) {
      if (credential.uid == caller.peer->uid) return &credential;
    } else if (!credential.certificate_name.empty() &&
               caller.tls_call != nullptr &&
               HasCertificateName(*caller.tls_call,
                                  credential.certificate_name)) {
      return &credential;
    }
  }
  return nullptr;
}

absl::Status AccessControl::CheckRole(const Credential& credential,
                                      const Permission& needed, Role role) {
  if (credential.role < role) {
    return MakeError(
        Reason::kRoleRefused,
        absl::StrCat(std::string(needed.method), " needs the role ",
                     std::string(RoleName(role)), "; credential '",
                     credential.name, "' has ",
                     std::string(RoleName(credential.role))));
  }
  if (needed.kind == MethodKind::kSpansNamespaces &&
      !credential.namespaces.empty()) {
    return MakeError(Reason::kNamespaceRefused,
                     absl::StrCat(std::string(needed.method),
                                  " spans all namespaces; credential '",
                                  credential.name, "' is limited to some"));
  }
  return absl::OkStatus();
}

absl::Status AccessControl::CheckSession(const Credential& credential,
                                         SessionId session) const {
  const auto owner = owners_.find(session);
  if (owner == owners_.end() || owner->second == &credential) {
    return absl::OkStatus();
  }
  return MakeError(Reason::kSessionRefused,
                   absl::StrCat("the session was opened with another "
                                "credential than '",
                                credential.name, "'"));
}

absl::Status AccessControl::CheckNamespace(const Credential& credential,
                                           const v1::Namespace& ns) {
  if (credential.MayName(ns.extra_key(), ns.cache_salt())) {
    return absl::OkStatus();
  }
  return MakeError(Reason::kNamespaceRefused,
                   absl::StrCat("credential '", credential.name,
                                "' may not name this namespace, of extra_key '",
                                ns.extra_key(), "'"));
}

std::string AccessControl::NameOf(const Caller& caller) const {
  const auto credential = Identify(caller);
  return credential.ok() ? (*credential)->name : "";
}

bool AccessControl::SpansNamespaces(const Caller& caller) const {
  const auto credential = Identify(caller);
  return credential.ok() && (*credential)->namespaces.empty();
}

std::string AccessControl::Own(SessionId session, const Caller& caller) {
  if (owners_.size() >= forget_at_) {
    absl::erase_if(
        owners_, [this](const auto& entry) { return !is_live_(entry.first); });
    forget_at_ = std::max(kOwnersKept, 2 * owners_.size());
  }
  const auto credential = Identify(caller);
  if (!credential.ok()) return "";
  owners_[session] = *credential;
  return (*credential)->name;
}

bool AccessControl::OwnAgain(SessionId session, std::string_view name) {
  const auto credential =
      std::ranges::find(credentials_, name, &Credential::name);
  const bool is_known = credential != credentials_.end();
  owners_[session] = is_known ? &*credential : nullptr;
  return is_known;
}

}  // namespace pando
