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

// The connection to one pando-mover, from its welcome until its process has
// ended. A copy without a reply is over only then, because the mover may write
// until then; while a mover is stopped (SIGSTOP), its copies stay under way.
// Owned by PageMovers; thread-safe.
class MoverConnection {
 public:
  // A copy that the mover was told to make. The connection's mutex guards it.
  struct Copying {
    absl::Time begin;
    bool is_over = false;
    absl::Status status;
  };

  struct Times {
    // Where the end of the process cannot be seen, copies count as over when
    // this time has passed since the connection closed.
    absl::Duration quarantine;
    // A mover that keeps a copy waiting for longer is taken to hang; a copy
    // takes milliseconds.
    absl::Duration hung_after = absl::Seconds(10);
    // A peer that does not say hello within this time is sent away.
    absl::Duration hello_within = absl::Seconds(1);
    // A welcome mover that has not mapped the memory within this time gives way
    // to others. Mapping takes seconds.
    absl::Duration ready_within = absl::Seconds(60);
  };

  // `process` becomes readable when the mover's process has ended; it is not
  // valid if that cannot be seen. `stop` is an eventfd that GiveUp writes to.
  // `device` is for messages.
  MoverConnection(UniqueFd socket, UniqueFd process, UniqueFd stop,
                  UnixPeer peer, const Times& times, std::string device);
  ~MoverConnection();
  MoverConnection(const MoverConnection&) = delete;
  MoverConnection& operator=(const MoverConnection&) = delete;

  // Tells the mover to copy between a page and the block at offset `block` of
  // the transfer memory. Does not wait. If the mover is not ready, End returns
  // UNAVAILABLE.
  std::shared_ptr<const Copying> Begin(mover::Direction direction, PageId page,
                                       uint64_t block);
  // Waits until the copy is over. Returns INTERNAL if the mover failed to make
  // it, and UNAVAILABLE if the mover was not ready or has ended.
  absl::Status End(const std::shared_ptr<const Copying>& copying);

  // Ends the connection. Copies that are under way fail at once, although the
  // mover may still write.
  void GiveUp();

  // Returns whether the mover is ready to copy and does not hang.
  bool is_ready() const;
  // Returns whether the process `peer` may take this mover's place: any process
  // may once the copies are over. The mover's own process may as soon as the
  // connection is closed, because a mover says hello again only when it copies
  // nothing any more. A process in another PID namespace is never known to be
  // the same.
  bool MayBeReplacedBy(const UnixPeer& peer) const;

 private:
  enum class State { kMapping, kReady, kClosed, kOver };

  void Run();
  // Handles a reply. Returns false if the mover has broken the protocol.
  bool Take(const mover::Reply& reply);
  // Sets how long Run waits for the next reply; zero stands for ever.
  void SetPatience(absl::Duration patience) const;
  // Waits until the process has ended, or the quarantine time has passed, if
  // the mover was told to copy (`was_told`). Returns false if GiveUp ended the
  // wait.
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
  // The copies that are under way, by the ids of their orders.
  std::map<uint64_t, std::shared_ptr<Copying>> copying_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_COPYING_MOVER_CONNECTION_H_
