#ifndef PANDO_SERVICE_CALLS_CALL_POLICY_H_
#define PANDO_SERVICE_CALLS_CALL_POLICY_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "os/turn.h"
#include "service/calls/call_rates.h"
#include "service/security/access_control.h"
#include "service/security/permissions.h"

namespace pando {

// The rules that hold for every call, on gRPC and on lanes: one handler runs at
// a time (the turn), who may make a call, how often, and which calls are logged
// as slow.
//
// Each transport takes the turn on its own polling thread.
//
// Owned by Server, or by a benchmark. Configure it before the first call.
// Members other than turn() are used in the turn.
class CallPolicy {
 public:
  struct Config {
    // Decides whether a caller may make a call; outlives the policy. If it is
    // null, every caller may make every call.
    AccessControl* access = nullptr;
    // Returns whether a session is open. If it is null, no session counts as
    // open.
    std::function<bool(SessionId)> is_live = nullptr;
    // The error that refuses calls which need pages. OK means that they are
    // served.
    absl::Status no_pages;
    // A call whose handler takes this long or longer is logged. Zero logs none.
    absl::Duration slow_call = absl::ZeroDuration();
    // Called in the turn each time a handler returns, before the answer is
    // sent, and when a tier has changed the cache in a turn of its own.
    std::function<void()> after_handler = nullptr;
  };

  // Sets the rules. To be called before the first call.
  void Configure(Config config) {
    turn_.set_after_handler(std::move(config.after_handler));
    config_ = std::move(config);
  }
  void set_slow_call(absl::Duration slow_call) {
    config_.slow_call = slow_call;
  }

  Turn& turn() { return turn_; }

  CallRates& call_rates() { return call_rates_; }

  // Returns whether a call that spent this time in its handler is to be logged.
  bool IsSlow(absl::Duration time) const {
    return config_.slow_call > absl::ZeroDuration() &&
           time >= config_.slow_call;
  }

  // In the members below, `caller` is a function that returns the Caller. They
  // call it only if they need the result.

  // Returns the caller's credential, or an error if it has none or the
  // credential may not call this method at all. Returns null if no credential
  // is needed: then every caller may call it.
  template <typename GetCaller>
  absl::StatusOr<const Credential*> Identify(const Permission& needed,
                                             GetCaller&& caller) const {
    if (config_.access == nullptr || !needed.role.has_value()) return nullptr;
    return config_.access->Identify(needed, caller());
  }
  // Returns OK if this credential may make a call with this request, else the
  // error for the caller. A null credential may make every call.
  template <typename Request>
  absl::Status Admit(const Permission& needed, const Credential* credential,
                     const Request& request) const {
    if (credential == nullptr) return absl::OkStatus();
    return config_.access->Admit(needed, *credential, request);
  }

  const absl::Status& no_pages() const { return config_.no_pages; }

  // Counts a call. Returns RATE_LIMITED if calls that name this session come
  // too often. A call that names no open session counts for its caller instead:
  // for the caller's credential, or for its connection when no credentials are
  // configured.
  template <typename GetCaller>
  absl::Status CheckRate(SessionId session, GetCaller&& caller) {
    if (!call_rates_.has_limit()) return absl::OkStatus();
    if (config_.is_live && config_.is_live(session)) {
      return call_rates_.Admit(session);
    }
    const Caller& who = caller();
    return call_rates_.Admit(config_.access == nullptr
                                 ? who.connection
                                 : config_.access->NameOf(who));
  }

  // Returns whether the caller may see the contents of all namespaces.
  template <typename GetCaller>
  bool SpansNamespaces(GetCaller&& caller) const {
    return config_.access == nullptr ||
           config_.access->SpansNamespaces(caller());
  }

  // Records that the caller has opened this session: its credential owns it
  // from now on. Returns the credential's name; empty: there is none.
  template <typename GetCaller>
  std::string Own(SessionId session, GetCaller&& caller) {
    if (config_.access == nullptr) return "";
    return config_.access->Own(session, caller());
  }

 private:
  Config config_;
  Turn turn_;
  CallRates call_rates_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_CALL_POLICY_H_
