#ifndef PANDO_SERVICE_CALLS_SERVED_CALL_H_
#define PANDO_SERVICE_CALLS_SERVED_CALL_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/status_macros.h"
#include "core/prefix_cache.h"
#include "os/monotonic_clock.h"
#include "service/calls/call_log.h"
#include "service/calls/call_policy.h"
#include "service/calls/method.h"
#include "service/calls/method_metrics.h"
#include "service/calls/waiting_call.h"

namespace pando {

// Takes one call from its request to its answer, on any transport: it admits
// the call, runs the handler, and counts and logs the result. The call may wait
// in between. Each transport derives a class from it, which owns the messages
// and sends the answer:
//
//   Begin -> Parse -> handler -> Send
//                       | none: OnWait ... Resume -> handler -> Send
//
// Used in the turn.
template <typename Request, typename Response>
class ServedCall : public WaitingCall {
 public:
  void Resume() override { Handle(); }
  bool is_cancelled() const final { return is_cancelled_; }
  absl::Status Keep(PrefixCache& cache, SessionId session) override {
    if (kept_.counts()) return absl::OkStatus();
    ASSIGN_OR_RETURN(kept_, cache.Keep(session, request_->SpaceUsedLong()));
    return absl::OkStatus();
  }
  bool spans_namespaces() const final {
    return policy_->SpansNamespaces([this] { return this->caller(); });
  }

 protected:
  // All arguments outlive the call. `request` is read only after Begin has
  // called Parse.
  ServedCall(CallPolicy* policy, MethodPointer<Request, Response> method,
             MethodMetrics metrics, const Request* request, Response* response)
      : policy_(policy),
        method_(std::move(method)),
        metrics_(metrics),
        request_(request),
        response_(response) {}
  ~ServedCall() = default;

  // Serves a request that has arrived: runs the handler, or answers with an
  // error.
  void Begin() {
    metrics_.Start();
    is_cancelled_ = false;
    waits_ = false;
    handling_ = absl::ZeroDuration();
    const absl::Status admitted = Admit();
    if (admitted.ok()) {
      Handle();
    } else {
      Answer(admitted);
    }
  }

  // Makes a waiting call answer now, because its caller is gone. REQUIRES:
  // waits().
  void Cancel() {
    is_cancelled_ = true;
    Handle();
  }

  // Returns whether the call has begun and was not answered at once.
  bool waits() const { return waits_; }

  CallPolicy* policy() const { return policy_; }

 private:
  // Parses the request. A transport that has parsed it before returns the
  // result.
  virtual absl::Status Parse() { return absl::OkStatus(); }
  // Called each time the handler lets the call wait.
  virtual void OnWait() {}
  // Sends the response or the error. The call is over then: Send may begin the
  // next call in this object, or delete it.
  virtual void Send(const absl::Status& status) = 0;

  // Checks that the caller may make this call, and does not call too often. The
  // credential is checked first, so that a request is not parsed for a caller
  // without one.
  absl::Status Admit() {
    const auto get_caller = [this] { return this->caller(); };
    ASSIGN_OR_RETURN(const Credential* const credential,
                     policy_->Identify(method_->permission, get_caller));
    RETURN_IF_ERROR(Parse());
    RETURN_IF_ERROR(policy_->Admit(method_->permission, credential, *request_));
    if (method_->needs_pages) RETURN_IF_ERROR(policy_->no_pages());
    if constexpr (requires { request_->session_id(); }) {
      if (!method_->is_limited) return absl::OkStatus();
      return policy_->CheckRate(SessionId(request_->session_id()), get_caller);
    }
    return absl::OkStatus();
  }

  void Handle() {
    const absl::Time start = MonotonicNow();
    const std::optional<absl::Status> status =
        method_->handler(*request_, *response_, *this);
    handling_ += MonotonicNow() - start;
    policy_->turn().AfterHandler();
    if (status.has_value()) {
      Answer(*status);
    } else {
      waits_ = true;
      OnWait();
    }
  }

  void Answer(const absl::Status& status) {
    metrics_.Record(status, handling_);
    if (policy_->IsSlow(handling_)) LogSlowCall(Answered(status));
    if (!status.ok()) LogRefusedCall(Answered(status));
    kept_ = KeptBytes();
    Send(status);
  }

  AnsweredCall Answered(const absl::Status& status) const {
    AnsweredCall call = {.service = metrics_.service(),
                         .method = metrics_.method(),
                         .status = status,
                         .time = handling_,
                         .peer = NameOf(caller())};
    if constexpr (requires { request_->request_id(); }) {
      call.request_id = request_->request_id();
    }
    return call;
  }

  CallPolicy* const policy_;
  const MethodPointer<Request, Response> method_;
  MethodMetrics metrics_;
  const Request* const request_;
  Response* const response_;
  bool is_cancelled_ = false;
  bool waits_ = false;
  KeptBytes kept_;  // counts the request while the call waits
  absl::Duration handling_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_SERVED_CALL_H_
