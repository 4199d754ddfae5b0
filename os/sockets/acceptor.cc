#include "os/sockets/acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "os/logging/log.h"
#include "os/sockets/accept.h"

namespace pando {
namespace {

constexpr int kDescriptorRetryMs = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(
    std::vector<Source> sources) {
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  return absl::WrapUnique(new Acceptor(std::move(sources), std::move(stop)));
}

Acceptor::Acceptor(std::vector<Source> sources, UniqueFd stop)
    : sources_(std::move(sources)),
      stop_(std::move(stop)),
      thread_([this] { Run(); }) {}

Acceptor::~Acceptor() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Acceptor::Run() {
  bool has_descriptors = true;
  std::vector<pollfd> polled;
  while (true) {
    polled.assign({{stop_.get(), POLLIN, 0}});
    // poll leaves out negative descriptors.
    for (const Source& source : sources_) {
      polled.push_back({has_descriptors ? source.fd : -1, POLLIN, 0});
    }
    poll(polled.data(), polled.size(),
         has_descriptors ? -1 : kDescriptorRetryMs);
    if (polled[0].revents != 0) return;
    has_descriptors = true;
    for (const Source& source : sources_) has_descriptors &= AcceptAll(source);
  }
}

bool Acceptor::AcceptAll(const Source& source) {
  while (true) {
    AcceptResult accepted = AcceptFrom(source.fd);
    if (accepted.is_out_of_descriptors) {
      Log(LogLevel::kError, "no descriptor is left for a new connection",
          {{"socket", source.name}});
      return false;
    }
    if (!accepted.fd.valid()) return true;
    source.on_connected(std::move(accepted.fd));
  }
}

}  // namespace pando
