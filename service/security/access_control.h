#ifndef PANDO_SERVICE_SECURITY_ACCESS_CONTROL_H_
#define PANDO_SERVICE_SECURITY_ACCESS_CONTROL_H_

#include <grpcpp/server_context.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/ids.h"
#include "base/status_macros.h"
#include "os/sockets/unix_peer.h"
#include "pando/v1/prefix_cache.pb.h"
#include "pando/v1/types.pb.h"
#include "service/security/credential.h"
#include "service/security/permissions.h"
#include "service/security/token_file.h"

namespace pando {

// The caller of a call, as far as its transport knows it. Valid only during the
// call.
struct Caller {
  // The transport's name of the connection.
  std::string connection;
  // The process at the other end; none on TCP.
  std::optional<UnixPeer> peer = {};
  // The value of the metadata "authorization"; none if the caller sent none.
  std::optional<std::string_view> authorization = {};
  // Gives access to its TLS certificate, if it has one; null on a lane.
  const grpc::ServerContext* tls_call = nullptr;
};

// Returns the caller's name for the log: "unix:uid=1000,pid=42", or the
// transport's name of the connection.
std::string NameOf(const Caller& caller);

// Decides on each call by the list of credentials: who the caller is, what its
// role permits, which namespaces it may name, whose session it uses. Identify
// comes first and needs no request. Admit comes once the request is parsed.
// Owned by Server; used in the turn, except for AdmitsToken.
class AccessControl {
 public:
  // Returns whether a session is still open. The owners of other sessions are
  // forgotten.
  using IsLive = std::function<bool(SessionId)>;

  // Returns an error if a token file cannot be read.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Create(
      std::vector<Credential> credentials, IsLive is_live);

  // Returns whether this bearer token is enough for such a call. Thread-safe.
  // REQUIRES: needed.role is set.
  bool AdmitsToken(const Permission& needed, std::string_view token) const;

  // Reads token files that have changed, and logs those that cannot be read.
  // Returns whether any tokens have changed, so that some may not be valid any
  // more.
  bool RefreshTokens();

  // Returns the caller's credential. Returns NO_CREDENTIAL if there is none,
  // and ROLE_REFUSED or NAMESPACE_REFUSED if it may not call this method,
  // whatever the request. REQUIRES: needed.role is set.
  absl::StatusOr<const Credential*> Identify(const Permission& needed,
                                             const Caller& caller) const {
    ASSIGN_OR_RETURN(const Credential* const credential, Identify(caller));
    RETURN_IF_ERROR(CheckRole(*credential, needed, *needed.role));
    return credential;
  }
  // Returns OK if this credential may make the call with this request, else
  // ROLE_REFUSED, SESSION_REFUSED or NAMESPACE_REFUSED. REQUIRES: Identify
  // returned the credential.
  template <typename Request>
  absl::Status Admit(const Permission& needed, const Credential& credential,
                     const Request& request) const {
    RETURN_IF_ERROR(CheckRole(credential, needed, RoleFor(needed, request)));
    RETURN_IF_ERROR(CheckSession(credential, SessionOf(request)));
    return CheckNamespaces(credential, request);
  }

  // Returns the name of the caller's credential, or "" if it has none; some
  // methods need none.
  std::string NameOf(const Caller& caller) const;
  // Returns whether the caller may see the contents of all namespaces.
  bool SpansNamespaces(const Caller& caller) const;

  // Records that an admitted caller has opened this session: from now on only
  // the same credential may use it. Returns the credential's name.
  std::string Own(SessionId session, const Caller& caller);
  // The same for a session that was opened by the credential of this name in an
  // earlier pandod. If there is no such credential any more, it returns false,
  // and no caller may use the session.
  bool OwnAgain(SessionId session, std::string_view name);

 private:
  AccessControl(std::vector<Credential> credentials, IsLive is_live);

  absl::StatusOr<const Credential*> Identify(const Caller& caller) const;
  const Credential* ByToken(std::string_view token) const;
  const Credential* ByTransport(const Caller& caller) const;
  static absl::Status CheckRole(const Credential& credential,
                                const Permission& needed, Role role);
  absl::Status CheckSession(const Credential& credential,
                            SessionId session) const;
  static absl::Status CheckNamespace(const Credential& credential,
                                     const v1::Namespace& ns);

  // Returns the least role for this request. It is kWorker for a match that
  // locks, because it holds pages on behalf of a session, and for one that
  // loads, because it takes pages from others.
  template <typename Request>
  static Role RoleFor(const Permission& needed, const Request& request) {
    if constexpr (requires { request.lock(); }) {
      if (request.lock()) return Role::kWorker;
    }
    if constexpr (requires {
                    { request.load() } -> std::same_as<v1::Load>;
                  }) {
      if (request.load() == v1::LOAD_START) return Role::kWorker;
    }
    return *needed.role;
  }

  template <typename Request>
  static SessionId SessionOf(const Request& request) {
    if constexpr (requires { request.session_id(); }) {
      return SessionId(request.session_id());
    } else if constexpr (requires { request.resume_session_id(); }) {
      return SessionId(request.resume_session_id());
    } else {
      return SessionId();
    }
  }

  template <typename Request>
  static absl::Status CheckNamespaces(const Credential& credential,
                                      const Request& request) {
    if (credential.namespaces.empty()) return absl::OkStatus();
    if constexpr (requires { request.queries(); }) {
      for (const auto& query : request.queries()) {
        RETURN_IF_ERROR(CheckNamespace(credential, query.namespace_()));
      }
    } else if constexpr (requires { request.kinds(0).namespace_(); }) {
      // Other calls name a kind by the number that OpenKinds or FindKinds
      // returned, so its namespace is checked here.
      for (const auto& kind : request.kinds()) {
        RETURN_IF_ERROR(CheckNamespace(credential, kind.namespace_()));
      }
    } else if constexpr (requires { request.namespace_(); }) {
      // The lock of an insert implies the namespace, which was checked when it
      // was taken.
      if constexpr (requires { request.lock_id(); }) {
        if (request.lock_id() != 0 && !request.has_namespace_()) {
          return absl::OkStatus();
        }
      }
      return CheckNamespace(credential, request.namespace_());
    }
    return absl::OkStatus();
  }

  const std::vector<Credential> credentials_;
  const IsLive is_live_;
  mutable absl::Mutex tokens_mutex_;
  // By credential, in the same order; empty for one without a token file.
  std::vector<std::optional<TokenFile>> token_files_
      ABSL_GUARDED_BY(tokens_mutex_);
  absl::flat_hash_map<SessionId, const Credential*> owners_;
  // When owners_ reaches this size, the owners of ended sessions are removed.
  size_t forget_at_ = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_ACCESS_CONTROL_H_
