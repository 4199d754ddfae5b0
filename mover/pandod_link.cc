#include "mover/pandod_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "mover/message_socket.h"
#include "spdlog/spdlog.h"

namespace pando::mover {
namespace {

// The timeout of the handshake, so that this process can be stopped although
// pandod hangs.
constexpr timeval kWelcomeTime = {.tv_sec = 2, .tv_usec = 0};
// The time between two looks at copies that are under way, while no order
// comes. A page of 2 MiB takes 80 us on a bus of 25 GB/s.
constexpr timespec kCopyPeriod = {.tv_sec = 0, .tv_nsec = 50'000};

absl::Status Unavailable(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("socket is '%s'; must have from 1 to %u bytes", path,
                        sizeof(address.sun_path) - 1));
  }
  path.copy(address.sun_path, path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return absl::ErrnoToStatus(errno, "socket");
  for (const int timeout : {SO_SNDTIMEO, SO_RCVTIMEO}) {
    setsockopt(socket.get(), SOL_SOCKET, timeout, &kWelcomeTime,
               sizeof(kWelcomeTime));
  }
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address),
              sizeof(address)) != 0) {
    return Unavailable(absl::StrCat("no pandod at ", path));
  }
  return socket;
}

}  // namespace

absl::StatusOr<PandodLink> PandodLink::Connect(const std::string& path,
                                               const std::string& device) {
  ASSIGN_OR_RETURN(UniqueFd socket, ConnectTo(path));
  PandodLink link(std::move(socket), device);
  Hello hello;
  device.copy(hello.device.data(), hello.device.size() - 1);
  RETURN_IF_ERROR(Send(link.socket_.get(), hello));
  ASSIGN_OR_RETURN(link.descriptors_,
                   Receive(link.socket_.get(), link.welcome_));
  if (link.welcome_.magic != kMagic) {
    return absl::FailedPreconditionError("pandod is of another version");
  }
  link.welcome_.refusal.back() = 0;
  if (link.welcome_.refusal.front() != 0) {
    return absl::UnavailableError(
        absl::StrCat("pandod says: ", link.welcome_.refusal.data()));
  }
  return link;
}

absl::Status PandodLink::Serve(const UniqueFd& stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<PageCopier> copier,
                   MakePageCopier(device_, welcome_, descriptors_));
  descriptors_.clear();
  RETURN_IF_ERROR(Send(socket_.get(), Reply{.id = 0, .is_done = 1}));
  spdlog::info("copies {} shards of {}", welcome_.num_shards, device_);
  while (true) {
    ASSIGN_OR_RETURN(const Work work, AwaitWork(stop));
    if (work.is_to_stop && under_way_ == 0) return absl::OkStatus();
    if (work.is_order) RETURN_IF_ERROR(BeginOrder(*copier));
    RETURN_IF_ERROR(ReplyToEnded(*copier));
  }
}

absl::StatusOr<PandodLink::Work> PandodLink::AwaitWork(
    const UniqueFd& stop) const {
  pollfd watched[] = {{.fd = stop.get(), .events = POLLIN, .revents = 0},
                      {.fd = socket_.get(), .events = POLLIN, .revents = 0}};
  const bool takes_more = under_way_ < kMaxOrders;
  while (ppoll(watched, takes_more ? 2 : 1,
               under_way_ == 0 ? nullptr : &kCopyPeriod, nullptr) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
  }
  const bool is_to_stop = watched[0].revents != 0;
  return Work{.is_order = !is_to_stop && watched[1].revents != 0,
              .is_to_stop = is_to_stop};
}

absl::Status PandodLink::BeginOrder(PageCopier& copier) {
  Order order;
  RETURN_IF_ERROR(Receive(socket_.get(), order).status());
  const absl::Status begun = copier.Begin(order);
  if (!begun.ok()) {
    spdlog::error("{}", begun.ToString());
    failed_.insert(order.id);
  }
  ++under_way_;
  return copier.MarkEnd(order);
}

// An error ends this process: without a reply pandod waits until it has ended.
absl::Status PandodLink::ReplyToEnded(PageCopier& copier) {
  if (under_way_ == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<uint64_t> ended, copier.TakeEnded());
  for (const uint64_t id : ended) {
    --under_way_;
    const bool has_failed = failed_.erase(id) != 0;
    RETURN_IF_ERROR(
        Send(socket_.get(), Reply{.id = id, .is_done = has_failed ? 0u : 1u}));
  }
  return absl::OkStatus();
}

}  // namespace pando::mover
