#include "service/memory/memory_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "gpu/kv_pool.h"
#include "os/logging/log.h"
#include "os/sockets/accept.h"

namespace pando {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr std::chrono::milliseconds kDescriptorRetry{100};
// The time that every peer gets to send its token, however many others want its
// place.
constexpr std::chrono::milliseconds kFairTime{50};
constexpr int kAcceptedAtOnce = 64;

static_assert(std::endian::native == std::endian::little,
              "the wire format is little endian");

template <typename T>
void Append(std::string& message, T value) {
  message.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Header(MemorySocketStatus status, size_t num_descriptors) {
  std::string message = "PNDO";
  Append(message, kWireVersion);
  Append(message, static_cast<uint32_t>(status));
  Append(message, static_cast<uint32_t>(num_descriptors));
  return message;
}

// The message is far smaller than a socket buffer, so it goes out whole or the
// peer is gone.
bool Send(int fd, std::string message,
          const std::vector<SharedDescriptor>& descriptors) {
  iovec body = {message.data(), message.size()};
  msghdr header = {};
  header.msg_iov = &body;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(KvPool::kMaxShards * sizeof(int))];
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::transform(
        descriptors.begin(), descriptors.end(),
        reinterpret_cast<int*>(CMSG_DATA(rights)),
        [](const SharedDescriptor& shared) { return shared.fd.get(); });
  }
  return sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(message.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemorySocket>> MemorySocket::Start(Config config,
                                                                  Share share) {
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  ASSIGN_OR_RETURN(std::unique_ptr<UnixListener> listener,
                   UnixListener::Start(config.socket));
  return absl::WrapUnique(new MemorySocket(std::move(config), std::move(share),
                                           std::move(listener),
                                           std::move(stop)));
}

MemorySocket::MemorySocket(Config config, Share share,
                           std::unique_ptr<UnixListener> listener,
                           UniqueFd stop)
    : config_(std::move(config)),
      share_(std::move(share)),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      tokens_(config_.token_ttl, config_.max_tokens_per_session),
      thread_([this] { Run(); }) {}

MemorySocket::~MemorySocket() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

MemorySocket::Stats MemorySocket::stats() const {
  return {.attached = attached_, .refused = refused_, .dropped = dropped_};
}

void MemorySocket::Run() {
  std::vector<pollfd> polled;
  while (true) {
    const bool accepts = Clock::now() >= accept_after_;
    // poll leaves out negative descriptors.
    polled.assign({{stop_.get(), POLLIN, 0},
                   {accepts ? listener_->fd() : -1, POLLIN, 0}});
    for (const Peer& peer : peers_) {
      polled.push_back({peer.fd.get(), POLLIN, 0});
    }
    poll(polled.data(), polled.size(), MillisecondsToNextDeadline(accepts));
    if (polled[0].revents != 0) return;

    size_t index = 0;
    for (size_t event = 2; event < polled.size(); ++event) {
      if (polled[event].revents != 0 && !ReceiveToken(peers_[index])) {
        peers_.erase(peers_.begin() + static_cast<ptrdiff_t>(index));
      } else {
        ++index;
      }
    }
    DropLatePeers();
    AcceptPeers();
  }
}

int MemorySocket::MillisecondsToNextDeadline(bool accepts) const {
  if (accepts && peers_.empty()) return -1;
  Clock::time_point next = Clock::time_point::max();
  if (!accepts) next = accept_after_;
  if (!peers_.empty()) next = std::min(next, peers_.front().deadline);
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
  return std::max(0, static_cast<int>(left.count()));
}

void MemorySocket::AcceptPeers() {
  // Accepts only so many peers at a time, so that connected peers are served
  // meanwhile.
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    const Clock::time_point now = Clock::now();
    if (now < accept_after_) return;
    if (peers_.size() > config_.max_peers) DropOldest();
    AcceptResult accepted = AcceptFrom(listener_->fd());
    if (accepted.is_out_of_descriptors) accept_after_ = now + kDescriptorRetry;
    if (!accepted.fd.valid()) return;
    const UnixPeer identity = UnixPeerOf(accepted.fd.get());
    if (config_.filter != nullptr && !config_.filter->Admit(identity, path())) {
      continue;
    }
    const bool is_full = peers_.size() == config_.max_peers;
    if (is_full && !tokens_.HasTokenFor(identity)) {
      ++dropped_;
      continue;
    }
    if (is_full && !DropPeerWithoutToken()) {
      // There is no place for another peer until the oldest has had its time.
      accept_after_ = peers_.front().arrived + kFairTime;
    }
    peers_.push_back({std::move(accepted.fd), identity, now,
                      now + absl::ToChronoNanoseconds(config_.peer_deadline)});
  }
}

// A peer without a token can only have come to take a place.
bool MemorySocket::DropPeerWithoutToken() {
  const auto intruder = std::find_if(
      peers_.begin(), peers_.end(),
      [this](const Peer& peer) { return !tokens_.HasTokenFor(peer.identity); });
  if (intruder == peers_.end()) return false;
  ++dropped_;
  peers_.erase(intruder);
  return true;
}

void MemorySocket::DropOldest() {
  ++dropped_;
  peers_.pop_front();
}

void MemorySocket::DropLatePeers() {
  const Clock::time_point now = Clock::now();
  while (!peers_.empty() && peers_.front().deadline <= now) DropOldest();
}

bool MemorySocket::ReceiveToken(Peer& peer) {
  const ssize_t received =
      recv(peer.fd.get(), peer.token.data() + peer.received,
           peer.token.size() - peer.received, 0);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (received <= 0) {
    ++dropped_;
    return false;
  }
  peer.received += static_cast<size_t>(received);
  if (peer.received < peer.token.size()) return true;
  Answer(peer);
  return false;
}

void MemorySocket::Answer(const Peer& peer) {
  std::vector<SharedDescriptor> descriptors;
  const MemorySocketStatus status = Grant(peer, descriptors);
  switch (status) {
    case MemorySocketStatus::kOk:
      ++attached_;
      break;
    case MemorySocketStatus::kBadToken:
      ++refused_;
      break;
    case MemorySocketStatus::kUnavailable:
      ++dropped_;
      break;
  }
  std::string message = Header(status, descriptors.size());
  for (const SharedDescriptor& each : descriptors) {
    Append(message, each.bytes);
  }
  Send(peer.fd.get(), std::move(message), descriptors);
}

MemorySocketStatus MemorySocket::Grant(
    const Peer& peer, std::vector<SharedDescriptor>& descriptors) {
  const std::optional<AttachGrant> grant =
      tokens_.Redeem(peer.token, peer.identity);
  if (!grant.has_value()) return MemorySocketStatus::kBadToken;
  absl::StatusOr<std::vector<SharedDescriptor>> shared =
      share_(*grant, peer.identity);
  if (shared.ok()) {
    descriptors = *std::move(shared);
    return MemorySocketStatus::kOk;
  }
  if (absl::IsFailedPrecondition(shared.status())) {
    return MemorySocketStatus::kBadToken;
  }
  Log(LogLevel::kWarning, "a worker gets no memory",
      {{"peer", NameOf(peer.identity)}, {"reason", shared.status().message()}});
  return MemorySocketStatus::kUnavailable;
}

}  // namespace pando
