#include "replay/worker_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <memory>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "replay/client_calls.h"
#include "replay/floor.h"

namespace pando::replay {
namespace {

// The byte that says "ready" in one direction and "go" in the other.
constexpr char kSignal = '!';

bool SendAll(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes = bytes.subspan(sent);
  }
  return true;
}

bool ReceiveAll(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    bytes = bytes.subspan(got);
  }
  return true;
}

template <typename T>
bool Send(int socket, const T& value) {
  return SendAll(socket, std::as_bytes(std::span(&value, 1)));
}

template <typename T>
bool Receive(int socket, T* value) {
  return ReceiveAll(socket, std::as_writable_bytes(std::span(value, 1)));
}

// The message that begins a WorkerResult; its calls follow.
struct Head {
  WorkerTotals totals;
  int64_t begin_ns;
  int64_t end_ns;
  uint64_t calls;
};

bool SendResult(int socket, const WorkerResult& result) {
  return Send(socket, Head{result.totals, result.begin_ns, result.end_ns,
                           result.calls.size()}) &&
         SendAll(socket, std::as_bytes(std::span(result.calls)));
}

bool ReceiveResult(int socket, WorkerResult* result) {
  Head head;
  if (!Receive(socket, &head)) return false;
  result->totals = head.totals;
  result->begin_ns = head.begin_ns;
  result->end_ns = head.end_ns;
  result->calls.resize(head.calls);
  return ReceiveAll(socket, std::as_writable_bytes(std::span(result->calls)));
}

// Runs the worker from start to end; its status becomes the exit code.
absl::Status Work(int socket, const WorkerAddresses& addresses,
                  const Trace& trace, const WorkerOptions& options) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Client> client,
      Client::Connect({.address = addresses.pandod,
                       .name = absl::StrCat("replay ", options.index),
                       .timeout = options.timeout,
                       .tls = addresses.tls,
                       .token = addresses.token,
                       .lane = options.transport != "grpc"}));
  if (options.transport == "lane" && client->transport() != Transport::kLane) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no lane: ", client->why_no_lane().message()));
  }
  ASSIGN_OR_RETURN(const PoolDescription pool, client->DescribePool());
  std::unique_ptr<Floor> floor;
  if (!addresses.echo_server.empty()) {
    ASSIGN_OR_RETURN(floor, ConnectEchoFloor(addresses.echo_server));
  }
  char go;
  if (!Send(socket, kSignal) || !Receive(socket, &go)) {
    return absl::CancelledError("no process waits for the result");
  }
  ClientCalls calls(*client, pool.layout.page_tokens);
  ASSIGN_OR_RETURN(const WorkerResult result,
                   Serve(calls, floor.get(), trace, options));
  return SendResult(socket, result)
             ? absl::OkStatus()
             : absl::CancelledError("no process waits for the result");
}

[[noreturn]] void WorkAndExit(int socket, const WorkerAddresses& addresses,
                              const Trace& trace,
                              const WorkerOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const absl::Status status = Work(socket, addresses, trace, options);
  if (!status.ok()) {
    std::cerr << "worker " << options.index << ": " << status.ToString()
              << std::endl;
  }
  // It must not call exit, which would flush and destroy objects that the
  // parent had at the fork.
  _exit(status.ok() ? 0 : 1);
}

}  // namespace

absl::StatusOr<WorkerProcess> WorkerProcess::Start(
    const WorkerAddresses& addresses, const Trace& trace,
    const WorkerOptions& options) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
  if (pid == 0) {
    close(sockets[0]);
    WorkAndExit(sockets[1], addresses, trace, options);
  }
  close(sockets[1]);
  return WorkerProcess(pid, sockets[0]);
}

WorkerProcess::~WorkerProcess() {
  if (socket_ >= 0) close(socket_);
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

absl::Status WorkerProcess::WaitReady() {
  char ready;
  return Receive(socket_, &ready)
             ? absl::OkStatus()
             : absl::AbortedError("a worker failed to attach");
}

absl::Status WorkerProcess::Go() {
  return Send(socket_, kSignal) ? absl::OkStatus()
                                : absl::AbortedError("a worker is gone");
}

bool WorkerProcess::HasEnded(absl::Duration limit) const {
  pollfd socket = {.fd = socket_, .events = POLLIN, .revents = 0};
  return poll(&socket, 1, static_cast<int>(absl::ToInt64Milliseconds(limit))) !=
         0;
}

absl::StatusOr<WorkerResult> WorkerProcess::Finish() {
  WorkerResult result;
  const bool received = ReceiveResult(socket_, &result);
  int ended = 0;
  waitpid(pid_, &ended, 0);
  pid_ = 0;
  if (!received || !WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
    return absl::AbortedError("a worker failed");
  }
  return result;
}

}  // namespace pando::replay
