#ifndef PANDO_TIERS_COPYING_MOVER_CONNECTION_H_
#define PANDO_TIERS_COPYING_MOVER_CONNECTION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "mover/messages.h"
#include "os/sockets/unix_peer.h"

namespace pando {

// One pando-mover, from its welcome until its process has ended: only then are
// its copies over, because it may write until then. The copies of a mover that
// is stopped are under way until it ends or goes on.
// Owned by PageMovers; thread-safe.
class MoverConnection {
 public:
  // A copy that the mover was told to make.
  struct Copying {
    absl::Time begin;
    bool is_over = false;
    absl::Status status;
  };

  struct Times {
    // The time that must pass after the connection has closed where the end of
    // the process cannot be seen.
    absl::Duration quarantine;
    // A mover that keeps a copy waiting for longer hangs: it takes
    // milliseconds.
    absl::Duration hung_after = absl::Seconds(10);
    // A peer that has not said hello by then is sent away.
    absl::Duration hello_within = absl::Seconds(1);
    // A mover that says nothing for so long once it is welcome gives way to
    // others; it maps in seconds.
    absl::Duration ready_within = absl::Seconds(60);
  };

  // `process` becomes readable when the mover's process has ended; it is not
  // valid where that cannot be seen. `stop` is an eventfd, for GiveUp.
  MoverConnection(UniqueFd socket, UniqueFd process, UniqueFd stop,
                  UnixPeer peer, const Times& times, std::string device);
  ~MoverConnection();
  MoverConnection(const MoverConnection&) = delete;
  MoverConnection& operator=(const MoverConnection&) = delete;

  // Tells the mover to copy. If it is not there, End says UNAVAILABLE.
  std::shared_ptr<const Copying> Begin(mover::Direction direction, PageId page,
                                       uint64_t block);
  // Waits for the copy.
  absl::Status End(const std::shared_ptr<const Copying>& copying);

  // Ends it: copies that are under way fail, though the mover may go on.
  void GiveUp();

  // Whether it copies, and does not hang.
  bool is_ready() const;
  // Whether this process may take its place. The same process may as soon as
  // the connection is closed: a mover says hello again only when it copies
  // nothing any more. In another PID namespace it is not known to be the same.
  bool MayBeReplacedBy(const UnixPeer& peer) const;

 private:
  enum class State { kMapping, kReady, kClosed, kOver };

  void Run();
  // Returns false when the mover does not say what it must.
  bool Take(const mover::Reply& reply);
  // How long Run waits for the next reply; zero: for ever.
  void SetPatience(absl::Duration patience) const;
  // Waits until the process has ended, if it was told to copy. False: this was
  // given up.
  bool AwaitEndOfProcess(bool was_told);
  void FailAll();
  absl::Status NotThere() const;

  const UniqueFd socket_;
  const UniqueFd process_;
  const UniqueFd stop_;
  const UnixPeer peer_;
  const Times times_;
  const std::string device_;
  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kMapping;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // Under way, by the ids of their orders.
  std::map<uint64_t, std::shared_ptr<Copying>> copying_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_COPYING_MOVER_CONNECTION_H_
