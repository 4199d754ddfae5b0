#ifndef PANDO_TIERS_COPYING_PAGE_MOVERS_H_
#define PANDO_TIERS_COPYING_PAGE_MOVERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "gpu/kv_pool.h"
#include "mover/messages.h"
#include "os/keeping/kept_descriptors.h"
#include "os/sockets/unix_listener.h"
#include "os/sockets/unix_peer.h"
#include "tiers/copying/mover_connection.h"
#include "tiers/copying/transfer_memory.h"

namespace pando {

// The pando-movers that copy pages for this process, which has no CUDA context:
// one for each device of the pool. They connect to a socket, and may come and
// go. Only processes of this user or of root are welcome, because a mover can
// write to all pages of its device. Owned by PageCopiers; thread-safe.
class PageMovers {
 public:
  struct Config {
    std::string socket;  // the path
    // Keeps the socket for the next pandod. It is null if nothing keeps it.
    KeptDescriptors* kept = nullptr;
    MoverConnection::Times times;
  };
  // Says whether a device has a mover that is ready to copy.
  struct Presence {
    std::string device;
    bool is_there;
  };

  // Begins to serve the socket. `pool` and `memory` must outlive the result.
  static absl::StatusOr<std::unique_ptr<PageMovers>> Start(
      const Config& config, const KvPool* pool, const TransferMemory* memory);
  ~PageMovers();
  PageMovers(const PageMovers&) = delete;
  PageMovers& operator=(const PageMovers&) = delete;

  // Copies a page to the block at offset `block` of the transfer memory, or
  // back, and waits for that. Returns UNAVAILABLE if a mover is missing or has
  // ended. Waits for a mover that is stopped, because it may still go on.
  absl::Status Copy(mover::Direction direction, PageId page, uint64_t block);

  // Ends the connections of all movers, and welcomes no more. Copies fail,
  // although a mover may go on with those that are under way. Must be called
  // only when this process ends.
  void GiveUp();

  // Returns whether every device has a mover that is ready.
  bool AreReady() const;
  // Returns an entry for each device of the pool.
  std::vector<Presence> presence() const;

 private:
  struct Device {
    std::string name;
    std::vector<uint32_t> shards;
  };
  // A peer that has not said hello yet.
  struct Newcomer {
    UniqueFd socket;
    absl::Time deadline;
  };

  PageMovers(const MoverConnection::Times& times, const KvPool* pool,
             const TransferMemory* memory,
             std::unique_ptr<UnixListener> listener, UniqueFd stop);

  // Returns the devices of the pool, in the order of their first shards.
  static std::vector<Device> DevicesOf(const KvPool& pool);

  // These run on the thread of the socket.
  void Run();
  // Accepts the next newcomer. Returns false when no descriptor is free.
  bool Accept();
  // Greets the newcomers whose time is up, although they have not said hello:
  // they get a refusal.
  void GreetLate();
  // Welcomes a mover that has said hello, or tells it why not.
  void Greet(UniqueFd socket);
  absl::Status Welcome(const UnixPeer& peer, UniqueFd& socket);
  // Returns the number of the device that this mover may copy, or why it is
  // refused.
  absl::StatusOr<size_t> Admit(const mover::Hello& hello,
                               const UnixPeer& peer) const;
  // Sends the welcome, which describes the shards of a device, with their
  // descriptors.
  absl::Status Describe(const Device& device, int socket) const;

  std::vector<std::shared_ptr<MoverConnection>> connections() const;

  const MoverConnection::Times times_;
  const KvPool* const pool_;
  const TransferMemory* const memory_;
  const std::unique_ptr<UnixListener> listener_;
  const UniqueFd stop_;
  const std::vector<Device> devices_;
  std::deque<Newcomer> newcomers_;  // the oldest first
  mutable absl::Mutex mutex_;
  // The connections, by the numbers of the devices; null for a device that had
  // no mover yet. Only the thread of the socket changes them.
  std::vector<std::shared_ptr<MoverConnection>> connections_
      ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_COPYING_PAGE_MOVERS_H_
