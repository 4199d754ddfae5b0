#include "service/sockets/unix_acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "service/logging/log.h"

namespace pando {
namespace {

constexpr int kDescriptorRetryMs = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<UnixAcceptor>> UnixAcceptor::Start(
    const UnixSocket& socket, PeerFilter* filter, OnConnected on_connected) {
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  ASSIGN_OR_RETURN(std::unique_ptr<UnixListener> listener,
                   UnixListener::Start(socket));
  return absl::WrapUnique(new UnixAcceptor(std::move(listener), std::move(stop),
                                           filter, std::move(on_connected)));
}

UnixAcceptor::UnixAcceptor(std::unique_ptr<UnixListener> listener,
                           UniqueFd stop, PeerFilter* filter,
                           OnConnected on_connected)
    : listener_(std::move(listener)),
      stop_(std::move(stop)),
      filter_(filter),
      on_connected_(std::move(on_connected)),
      thread_([this] { Run(); }) {}

UnixAcceptor::~UnixAcceptor() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void UnixAcceptor::Run() {
  bool has_descriptors = true;
  while (true) {
    // A negative descriptor is one that poll leaves out.
    pollfd polled[] = {{stop_.get(), POLLIN, 0},
                       {has_descriptors ? listener_->fd() : -1, POLLIN, 0}};
    poll(polled, 2, has_descriptors ? -1 : kDescriptorRetryMs);
    if (polled[0].revents != 0) return;
    has_descriptors = AcceptAll();
  }
}

bool UnixAcceptor::AcceptAll() {
  while (true) {
    AcceptResult accepted = listener_->Accept();
    if (accepted.is_out_of_descriptors) {
      Log(LogLevel::kError, "no descriptor is left for a new connection",
          {{"socket", listener_->path()}});
      return false;
    }
    if (!accepted.fd.valid()) return true;
    const UnixPeer peer = UnixPeerOf(accepted.fd.get());
    if (filter_ != nullptr && !filter_->Admit(peer, listener_->path()))
      continue;
    on_connected_(std::move(accepted.fd), peer);
  }
}

}  // namespace pando
