#include "replay/pandod_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace pando {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(30);
constexpr int kLookEveryMs = 5;

bool Accepts(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool accepted = connect(fd, reinterpret_cast<const sockaddr*>(&address),
                                sizeof(address)) == 0;
  close(fd);
  return accepted;
}

[[noreturn]] void Exec(const std::vector<std::string>& command, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  std::vector<char*> argv;
  for (const std::string& word : command) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

}  // namespace

absl::StatusOr<PandodProcess> PandodProcess::Start(
    const std::string& program, const std::string& socket_path,
    const std::vector<std::string>& flags) {
  std::vector<std::string> command = {program, "--socket", socket_path};
  command.insert(command.end(), flags.begin(), flags.end());
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
  if (pid == 0) Exec(command, parent);

  PandodProcess process(pid);
  const int death = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd ended = {death, POLLIN, 0};
  const absl::Time deadline = absl::Now() + kStartLimit;
  absl::Status status;
  while (status.ok() && !Accepts(socket_path)) {
    if (poll(&ended, 1, kLookEveryMs) > 0) {
      status = absl::UnavailableError(
          absl::StrCat(program, " ended before it accepted connections"));
    } else if (absl::Now() > deadline) {
      status = absl::DeadlineExceededError(
          absl::StrCat(program, " does not accept at ", socket_path));
    }
  }
  close(death);
  if (!status.ok()) return status;
  return process;
}

void PandodProcess::Kill() { End(SIGKILL); }

absl::Status PandodProcess::Stop() {
  const int ended = End(SIGTERM);
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "pandod ended with ", WIFEXITED(ended) ? "exit code " : "signal ",
      WIFEXITED(ended) ? WEXITSTATUS(ended) : WTERMSIG(ended)));
}

int PandodProcess::End(int signal) {
  if (pid_ == 0) return 0;
  kill(pid_, signal);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return status;
}

}  // namespace pando
