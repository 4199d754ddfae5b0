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

// The rules for all calls, whichever transport they come by: one runs at a
// time, who may make it and how often, and which are logged as slow.
//
// Each transport takes the turn on the thread that it polls on.
//
// Owned by Server, or by a benchmark. Configure it before the first call. The
// members other than turn() are used in the turn.
class CallPolicy {
 public:
  struct Config {
    // Decides on each call; outlives the policy. Null: everybody may do
    // everything.
    AccessControl* access = nullptr;
    // Whether a session is open; null: none is.
    std::function<bool(SessionId)> is_live = nullptr;
    // Why calls that need pages are refused; OK: they are not.
    absl::Status no_pages;
    // Calls whose handlers take longer are logged; zero: none.
    absl::Duration slow_call = absl::ZeroDuration();
    // Called after each handler, before its caller has the answer.
    std::function<void()> after_handler = nullptr;
  };

  void Configure(Config config) {
    turn_.set_after_handler(std::move(config.after_handler));
    config_ = std::move(config);
  }
  void set_slow_call(absl::Duration slow_call) {
    config_.slow_call = slow_call;
  }

  Turn& turn() { return turn_; }

  CallRates& call_rates() { return call_rates_; }

  bool IsSlow(absl::Duration time) const {
    return config_.slow_call > absl::ZeroDuration() &&
           time >= config_.slow_call;
  }

  // In what follows, `caller` is a function that returns the Caller. It is
  // called only where the answer is needed.

  // The credential of the caller, or an error if it may not call this method at
  // all. Null: everybody may.
  template <typename GetCaller>
  absl::StatusOr<const Credential*> Identify(const Permission& needed,
                                             GetCaller&& caller) const {
    if (config_.access == nullptr || !needed.role.has_value()) return nullptr;
    return config_.access->Identify(needed, caller());
  }
  // OK if this credential may make a call with this request, else why not.
  template <typename Request>
  absl::Status Admit(const Permission& needed, const Credential* credential,
                     const Request& request) const {
    if (credential == nullptr) return absl::OkStatus();
    return config_.access->Admit(needed, *credential, request);
  }

  const absl::Status& no_pages() const { return config_.no_pages; }

  // OK, or RATE_LIMITED when calls that name this session come too often. A
  // call without an open session counts for its caller.
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

  // Whether the caller may see the contents of all namespaces.
  template <typename GetCaller>
  bool SpansNamespaces(GetCaller&& caller) const {
    return config_.access == nullptr ||
           config_.access->SpansNamespaces(caller());
  }

  // Records that the caller has opened this session: its credential owns it
  // from now on.
  template <typename GetCaller>
  void Own(SessionId session, GetCaller&& caller) {
    if (config_.access != nullptr) config_.access->Own(session, caller());
  }

 private:
  Config config_;
  Turn turn_;
  CallRates call_rates_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_CALL_POLICY_H_
