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

// The caller of a call, as far as its transport knows it. Valid as long as the
// call.
struct Caller {
  // The transport's name of the connection.
  std::string connection;
  // The process at the other end; none on TCP.
  std::optional<UnixPeer> peer = {};
  // The value of the metadata "authorization".
  std::optional<std::string_view> authorization = {};
  // Gives access to its TLS certificate, if it has one; null on a lane.
  const grpc::ServerContext* tls_call = nullptr;
};

// The caller's name for the log: "unix:uid=1000,pid=42", or the transport's
// name of the connection.
std::string NameOf(const Caller& caller);

// Decides on each call by the list of credentials: who the caller is, what its
// role permits, which namespaces it may name, whose session it uses. Identify
// comes first and needs no request; Admit comes once the request is parsed.
// Owned by Server; used in the turn, except where it says otherwise.
class AccessControl {
 public:
  // Whether a session is still open; the owners of others are forgotten.
  using IsLive = std::function<bool(SessionId)>;

  // Fails when a token file cannot be read.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Create(
      std::vector<Credential> credentials, IsLive is_live);

  // Whether this bearer token is enough for such a call. Thread-safe.
  bool AdmitsToken(const Permission& needed, std::string_view token) const;

  // Reads token files that have changed. Returns whether some token may not be
  // valid any more.
  bool RefreshTokens();

  // The credential of the caller, or an error if it may not call this method,
  // whatever the request. REQUIRES: needed.role is set.
  absl::StatusOr<const Credential*> Identify(const Permission& needed,
                                             const Caller& caller) const {
    ASSIGN_OR_RETURN(const Credential* const credential, Identify(caller));
    RETURN_IF_ERROR(CheckRole(*credential, needed, *needed.role));
    return credential;
  }
  // OK if this credential may make the call with this request, else why not.
  // REQUIRES: Identify returned the credential.
  template <typename Request>
  absl::Status Admit(const Permission& needed, const Credential& credential,
                     const Request& request) const {
    RETURN_IF_ERROR(CheckRole(credential, needed, RoleFor(needed, request)));
    RETURN_IF_ERROR(CheckSession(credential, SessionOf(request)));
    return CheckNamespaces(credential, request);
  }

  // The name of the caller's credential; empty if it has none, which is enough
  // for some methods.
  std::string NameOf(const Caller& caller) const;
  // Whether the caller may see the contents of all namespaces.
  bool SpansNamespaces(const Caller& caller) const;

  // Records that an admitted caller has opened this session: from now on only
  // the same credential may use it.
  void Own(SessionId session, const Caller& caller);

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

  // A match that locks holds pages on behalf of a session, and one that loads
  // takes pages from others.
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
      // Of what other calls name by the kind's number, too.
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
  // One for each credential that has a token file.
  std::vector<std::optional<TokenFile>> token_files_
      ABSL_GUARDED_BY(tokens_mutex_);
  absl::flat_hash_map<SessionId, const Credential*> owners_;
  // At this size of owners_, those of sessions that have ended are removed.
  size_t forget_at_ = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_ACCESS_CONTROL_H_
