#include "clients/cpp/src/session_stream.h"

#include <utility>

#include "clients/cpp/src/event_stream.h"
#include "pando/errors.h"

namespace pando {
inline namespace client {
namespace {

// How often the stream is looked at. A broken one is noticed this late, well
// within the server's grace.
constexpr absl::Duration kTick = absl::Milliseconds(50);
constexpr absl::Duration kPauseBetweenAttempts = absl::Milliseconds(50);

bool IsTemporary(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         ReasonOf(status) == reason::kSessionLost;
}

}  // namespace

SessionStream::SessionStream(std::unique_ptr<v1::Sessions::Stub> stub,
                             Options options)
    : options_(std::move(options)),
      stub_(std::move(stub)),
      thread_([this] { Run(); }) {}

absl::Status SessionStream::AwaitOpened(absl::Time deadline) {
  const auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return session_.id != 0 || !(last_end_.ok() || IsTemporary(last_end_));
  };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithDeadline(absl::Condition(&decided), deadline);
  if (session_.id != 0) return absl::OkStatus();
  return last_end_.ok() ? absl::UnavailableError("no answer") : last_end_;
}

Session SessionStream::session() const {
  absl::ReaderMutexLock lock(&mutex_);
  return session_;
}

void SessionStream::End() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    session_ = {};
  }
  if (thread_.joinable()) thread_.join();
}

void SessionStream::Run() {
  while (!stopping()) {
    const absl::Status end = Serve();
    if (ReasonOf(end) == reason::kSessionLost) Lose();
    absl::MutexLock lock(&mutex_);
    last_end_ = end;
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kPauseBetweenAttempts);
  }
}

absl::Status SessionStream::Serve() {
  EventStream stream(*stub_, options_.token, [this] { return stopping(); });
  v1::OpenSessionRequest request;
  request.set_client_name(options_.client_name);
  request.set_resume_session_id(session().id);
  v1::SessionOpened opened;
  if (!stream.Open(request, absl::Now() + options_.timeout, &opened)) {
    return stream.Close(/*half_close=*/false);
  }
  Adopt(opened);
  while (stream.Poll()) {
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kTick)) break;
  }
  return stream.Close(/*half_close=*/stopping());
}

void SessionStream::Adopt(const v1::SessionOpened& opened) {
  if (session().id != opened.session_id()) Lose();
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  session_ = {.id = opened.session_id(),
              .epoch = opened.epoch(),
              .page_tokens = opened.pool().layout().page_tokens()};
}

void SessionStream::Lose() {
  {
    absl::MutexLock lock(&mutex_);
    if (session_.id == 0) return;
    session_ = {};
  }
  if (options_.on_lost) options_.on_lost();
}

bool SessionStream::stopping() const {
  absl::ReaderMutexLock lock(&mutex_);
  return stopping_;
}

}  // namespace client
}  // namespace pando
