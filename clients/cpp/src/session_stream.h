#ifndef PANDO_CLIENTS_CPP_SRC_SESSION_STREAM_H_
#define PANDO_CLIENTS_CPP_SRC_SESSION_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "pando/types.h"
#include "pando/v1/session.grpc.pb.h"

namespace pando {
inline namespace client {

// The facts about a session that calls need. All are zero if there is none.
struct Session {
  uint64_t id = 0;
  uint64_t epoch = 0;
  uint32_t page_tokens = 0;

  // Returns `handle`, or an empty one if it is of another epoch.
  PrefixHandle Usable(const PrefixHandle& handle) const {
    return id != 0 && handle.epoch == epoch ? handle : PrefixHandle();
  }
  // Returns the number of whole pages in `tokens` tokens. REQUIRES: there is a
  // session, or `tokens` is 0.
  uint32_t PagesOf(uint32_t tokens) const {
    return tokens == 0 ? 0 : tokens / page_tokens;
  }
};

// Keeps a session alive: holds its stream open on a thread of its own, resumes
// it when the stream breaks, and opens a new session when that fails.
//
// Owned by Connection. Thread-safe.
class SessionStream {
 public:
  struct Options {
    std::string client_name;
    std::string token;
    // How long one attempt to open may take.
    absl::Duration timeout;
    // Called on the stream's thread when a session is lost.
    std::function<void()> on_lost;
    // Called on the stream's thread when a stream has opened or resumed a
    // session, before calls can use it; and when that stream has ended.
    std::function<void(const Session&)> on_opened = nullptr;
    std::function<void(const absl::Status&)> on_ended = nullptr;
  };

  SessionStream(std::unique_ptr<v1::Sessions::Stub> stub, Options options);
  ~SessionStream() { End(); }

  // Waits for the first session. Fails after `timeout`, or as soon as the
  // server refuses with an error that does not pass by itself.
  absl::Status AwaitOpened(absl::Duration timeout);

  Session session() const;

  // Ends the session; nothing is opened again.
  void End();

 private:
  void Run();
  // Opens a stream and keeps it until it breaks. Returns why it did.
  absl::Status Serve(bool waits_for_server);
  void Adopt(const v1::SessionOpened& opened);
  void Lose();
  void SetLastEnd(const absl::Status& end);
  // Sleeps for `time`, or until the session is to end.
  void Pause(absl::Duration time);
  bool stopping() const;

  const Options options_;
  const std::unique_ptr<v1::Sessions::Stub> stub_;

  // This mutex is from the standard library, because Abseil's waits by the wall
  // clock: if that were set back, the stream would not be polled for as long.
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  Session session_;
  // How the last stream ended.
  absl::Status last_end_;

  // The last member: it uses all others.
  std::thread thread_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_SESSION_STREAM_H_
