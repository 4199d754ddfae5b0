#include "clients/cpp/src/session_stream.h"

#include <utility>

#include "clients/cpp/src/event_stream.h"
#include "pando/errors.h"

namespace pando {
inline namespace client {
namespace {

// The time between two looks at the stream. A broken stream is noticed after
// this time, well within the server's grace period.
constexpr absl::Duration kTick = absl::Milliseconds(50);
constexpr absl::Duration kPauseBetweenAttempts = absl::Milliseconds(50);

bool IsTemporary(const absl::Status& status) {
  return absl::IsUnavailable(status) ||
         ReasonOf(status) == reason::kSessionLost;
}

}  // namespace

SessionStream::SessionStream(std::unique_ptr<v1::Sessions::Stub> stub,
                             Options options)
    : options_(std::move(options)),
      stub_(std::move(stub)),
      thread_([this] { Run(); }) {}

absl::Status SessionStream::AwaitOpened(absl::Duration timeout) {
  const auto decided = [this] {
    return session_.id != 0 || !(last_end_.ok() || IsTemporary(last_end_));
  };
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), decided);
  if (session_.id != 0) return absl::OkStatus();
  return last_end_.ok() ? absl::UnavailableError("no answer") : last_end_;
}

Session SessionStream::session() const {
  const std::lock_guard lock(mutex_);
  return session_;
}

void SessionStream::End() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    session_ = {};
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void SessionStream::Run() {
  // The first attempt tells why there is no server. Later ones wait for it:
  // gRPC connects again when a call waits, else every five seconds.
  for (bool is_first = true; !stopping(); is_first = false) {
    const absl::Status end = Serve(/*waits_for_server=*/!is_first);
    if (ReasonOf(end) == reason::kSessionLost) Lose();
    SetLastEnd(end);
    Pause(kPauseBetweenAttempts);
  }
}

absl::Status SessionStream::Serve(bool waits_for_server) {
  EventStream stream(*stub_, options_.token, [this] { return stopping(); });
  v1::OpenSessionRequest request;
  request.set_client_name(options_.client_name);
  request.set_resume_session_id(session().id);
  v1::SessionOpened opened;
  if (!stream.Open(request, options_.timeout, waits_for_server, &opened)) {
    return stream.Close(/*half_close=*/false);
  }
  Adopt(opened);
  while (!stopping() && stream.Poll()) Pause(kTick);
  absl::Status end = stream.Close(/*half_close=*/stopping());
  if (options_.on_ended) options_.on_ended(end);
  return end;
}

void SessionStream::Adopt(const v1::SessionOpened& opened) {
  if (session().id != opened.session_id()) Lose();
  const Session session = {.id = opened.session_id(),
                           .epoch = opened.epoch(),
                           .page_tokens = opened.pool().layout().page_tokens()};
  if (options_.on_opened) options_.on_opened(session);
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  session_ = session;
  changed_.notify_all();
}

void SessionStream::Lose() {
  {
    const std::lock_guard lock(mutex_);
    if (session_.id == 0) return;
    session_ = {};
  }
  if (options_.on_lost) options_.on_lost();
}

void SessionStream::SetLastEnd(const absl::Status& end) {
  const std::lock_guard lock(mutex_);
  // The client has cancelled this attempt itself, because it had waited long
  // enough or the client is closed: that says nothing about the server.
  if (absl::IsCancelled(end)) return;
  last_end_ = end;
  changed_.notify_all();
}

void SessionStream::Pause(absl::Duration time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(time),
                    [this] { return stopping_; });
}

bool SessionStream::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace client
}  // namespace pando
