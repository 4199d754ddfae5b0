#include "tiers/copying/page_movers.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "mover/message_socket.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "os/sockets/accept.h"
#include "tiers/copying/mover_process.h"

namespace pando {
namespace {

// Only processes of this user, or of root, may connect.
constexpr mode_t kSocketMode = 0600;
// At most so many newcomers may wait to say hello; a further one replaces the
// oldest.
constexpr size_t kMaxNewcomers = 64;
// When no descriptor is free, no connection is accepted for this time. A
// newcomer's wait may end late by as much.
constexpr int kRetryMs = 100;
// In the list of watched descriptors, two others come before those of
// newcomers.
constexpr size_t kFirstNewcomer = 2;

absl::StatusOr<UniqueFd> MakeEvent() {
  UniqueFd event(eventfd(0, EFD_CLOEXEC));
  if (!event.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  return event;
}

// The geometry that the shards of a layout have in common.
mover::PageGeometry GeometryOf(const KvLayout& layout) {
  return {.pieces = uint64_t{layout.layers} * layout.kv_planes,
          .page_stride = layout.page_stride,
          .piece_stride = layout.kv_stride,
          .piece_bytes = layout.piece_bytes};
}

static_assert(mover::kMaxShards == KvPool::kMaxShards);

// Returns whether the peer has closed the connection without a message. Another
// pandod does so to find out whether this socket is served.
bool IsGoneWithoutAWord(int socket) {
  std::byte word;
  return recv(socket, &word, sizeof(word), MSG_PEEK | MSG_DONTWAIT) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageMovers>> PageMovers::Start(
    const Config& config, const KvPool* pool, const TransferMemory* memory) {
  ASSIGN_OR_RETURN(UniqueFd stop, MakeEvent());
  ASSIGN_OR_RETURN(std::unique_ptr<UnixListener> listener,
                   UnixListener::Start({.path = config.socket,
                                        .mode = kSocketMode,
                                        .kept = config.kept,
                                        .kept_name = "listen-mover"}));
  return absl::WrapUnique(new PageMovers(config.times, pool, memory,
                                         std::move(listener), std::move(stop)));
}

PageMovers::PageMovers(const MoverConnection::Times& times, const KvPool* pool,
                       const TransferMemory* memory,
                       std::unique_ptr<UnixListener> listener, UniqueFd stop)
    : times_(times),
      pool_(pool),
      memory_(memory),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      devices_(DevicesOf(*pool)),
      connections_(devices_.size()),
      thread_([this] { Run(); }) {}

PageMovers::~PageMovers() { GiveUp(); }

void PageMovers::GiveUp() {
  eventfd_write(stop_.get(), 1);
  if (thread_.joinable()) thread_.join();
  for (const auto& mover : connections()) {
    if (mover != nullptr) mover->GiveUp();
  }
}

std::vector<PageMovers::Device> PageMovers::DevicesOf(const KvPool& pool) {
  std::vector<Device> devices;
  for (const KvShard& shard : pool.shards()) {
    auto device = std::ranges::find(devices, shard.device, &Device::name);
    if (device == devices.end()) {
      devices.push_back({.name = shard.device, .shards = {}});
      device = devices.end() - 1;
    }
    device->shards.push_back(shard.index);
  }
  return devices;
}

void PageMovers::Run() {
  pthread_setname_np(pthread_self(), "movers");
  bool may_accept = true;
  std::vector<pollfd> watched;
  while (true) {
    // poll() ignores negative descriptors.
    watched.assign({{stop_.get(), POLLIN, 0},
                    {may_accept ? listener_->fd() : -1, POLLIN, 0}});
    for (const Newcomer& each : newcomers_) {
      watched.push_back({each.socket.get(), POLLIN, 0});
    }
    const bool is_idle = may_accept && newcomers_.empty();
    poll(watched.data(), watched.size(), is_idle ? -1 : kRetryMs);
    if (watched[0].revents != 0) return;
    // Newcomers that have said hello are greeted before others are accepted,
    // which could push them out.
    for (size_t i = watched.size(); i-- > kFirstNewcomer;) {
      if (watched[i].revents == 0) continue;
      const auto said =
          newcomers_.begin() + static_cast<ptrdiff_t>(i - kFirstNewcomer);
      UniqueFd socket = std::move(said->socket);
      newcomers_.erase(said);
      Greet(std::move(socket));
    }
    GreetLate();
    may_accept = Accept();
  }
}

bool PageMovers::Accept() {
  AcceptResult accepted = AcceptFrom(listener_->fd());
  if (!accepted.fd.valid()) return !accepted.is_out_of_descriptors;
  if (newcomers_.size() == kMaxNewcomers) newcomers_.pop_front();
  newcomers_.push_back(
      {std::move(accepted.fd), MonotonicNow() + times_.hello_within});
  return true;
}

void PageMovers::GreetLate() {
  while (!newcomers_.empty() && newcomers_.front().deadline <= MonotonicNow()) {
    UniqueFd socket = std::move(newcomers_.front().socket);
    newcomers_.pop_front();
    Greet(std::move(socket));
  }
}

void PageMovers::Greet(UniqueFd socket) {
  if (IsGoneWithoutAWord(socket.get())) return;
  const UnixPeer peer = UnixPeerOf(socket.get());
  const absl::Status welcomed = Welcome(peer, socket);
  if (welcomed.ok()) return;
  Log(LogLevel::kWarning, "a pando-mover is not welcome",
      {{"peer", NameOf(peer)}, {"reason", welcomed.message()}});
  mover::Welcome answer;
  welcomed.message().copy(answer.refusal.data(), answer.refusal.size() - 1);
  mover::Send(socket.get(), answer).IgnoreError();
}

absl::Status PageMovers::Welcome(const UnixPeer& peer, UniqueFd& socket) {
  // The socket does not block yet, so that a peer that sends its hello byte by
  // byte does not keep this thread waiting.
  mover::Hello hello;
  RETURN_IF_ERROR(mover::Receive(socket.get(), hello).status());
  hello.device.back() = 0;
  ASSIGN_OR_RETURN(const size_t number, Admit(hello, peer));
  ASSIGN_OR_RETURN(UniqueFd process, MoverProcessOf(socket.get(), peer));
  ASSIGN_OR_RETURN(UniqueFd stop, MakeEvent());
  const Device& device = devices_[number];
  RETURN_IF_ERROR(Describe(device, socket.get()));
  fcntl(socket.get(), F_SETFL, 0);  // blocks from now on: its own thread reads
  auto mover = std::make_shared<MoverConnection>(
      std::move(socket), std::move(process), std::move(stop), peer, times_,
      device.name);
  {
    absl::MutexLock hold(&mutex_);
    connections_[number].swap(mover);
  }
  if (mover != nullptr) mover->GiveUp();  // the one before it
  return absl::OkStatus();
}

absl::StatusOr<size_t> PageMovers::Admit(const mover::Hello& hello,
                                         const UnixPeer& peer) const {
  if (peer.uid != geteuid() && peer.uid != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("it must belong to user ", geteuid(), ", or to root"));
  }
  if (hello.magic != mover::kMagic) {
    return absl::InvalidArgumentError("it is of another version");
  }
  const std::string name = hello.device.data();
  const auto device = std::ranges::find(devices_, name, &Device::name);
  if (device == devices_.end()) {
    return absl::NotFoundError(absl::StrCat("the pool has no shard on ", name,
                                            "; its first one is on ",
                                            devices_.front().name));
  }
  const auto number = static_cast<size_t>(device - devices_.begin());
  const auto mover = connections()[number];
  if (mover == nullptr || mover->MayBeReplacedBy(peer)) return number;
  return absl::AlreadyExistsError(
      absl::StrCat(name, " has a pando-mover already"));
}

absl::Status PageMovers::Describe(const Device& device, int socket) const {
  mover::Welcome welcome;
  std::vector<UniqueFd> descriptors;
  ASSIGN_OR_RETURN(UniqueFd transfers, memory_->Share());
  descriptors.push_back(std::move(transfers));
  for (const uint32_t shard : device.shards) {
    ASSIGN_OR_RETURN(UniqueFd memory, pool_->ExportShard(shard));
    descriptors.push_back(std::move(memory));
    welcome.shards[welcome.num_shards++] = shard;
    welcome.shard_bytes = pool_->shards()[shard].size_bytes;
  }
  welcome.capacity_pages = pool_->capacity_pages();
  welcome.geometry = GeometryOf(pool_->layout());
  welcome.transfer_bytes = memory_->size_bytes();
  return mover::Send(socket, welcome, descriptors);
}

std::vector<std::shared_ptr<MoverConnection>> PageMovers::connections() const {
  absl::MutexLock hold(&mutex_);
  return connections_;
}

absl::Status PageMovers::Copy(mover::Direction direction, PageId page,
                              uint64_t block) {
  const auto movers = connections();
  const auto missing = std::ranges::find(movers, nullptr);
  if (missing != movers.end()) {
    const auto number = static_cast<size_t>(missing - movers.begin());
    return absl::UnavailableError(
        absl::StrCat("there is no pando-mover of ", devices_[number].name));
  }
  // All movers copy at the same time. It waits for all of them, even if one
  // fails.
  std::vector<std::shared_ptr<const MoverConnection::Copying>> parts;
  for (const auto& mover : movers) {
    parts.push_back(mover->Begin(direction, page, block));
  }
  absl::Status status;
  for (size_t i = 0; i < movers.size(); ++i) {
    status.Update(movers[i]->End(parts[i]));
  }
  return status;
}

bool PageMovers::AreReady() const {
  return std::ranges::all_of(connections(), [](const auto& mover) {
    return mover != nullptr && mover->is_ready();
  });
}

std::vector<PageMovers::Presence> PageMovers::presence() const {
  std::vector<Presence> all;
  const auto movers = connections();
  for (size_t i = 0; i < movers.size(); ++i) {
    all.push_back({.device = devices_[i].name,
                   .is_there = movers[i] != nullptr && movers[i]->is_ready()});
  }
  return all;
}

}  // namespace pando
