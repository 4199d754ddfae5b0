#include "os/keeping/kept_descriptors.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "os/logging/log.h"
#include "os/service_manager.h"

namespace pando {
namespace {

constexpr int kFirst = 3;  // the first descriptor that is handed down
// The variable that tells the numbers of the descriptors if they are not kFirst
// and those that follow it. PassOn sets it.
constexpr char kNumbers[] = "PANDOD_LISTEN_FDNUMBERS";

std::string TextOf(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

// Returns the number of the descriptor that is handed down as the i-th.
int NumberOf(int i, const std::vector<std::string>& numbers) {
  const auto at = static_cast<size_t>(i);
  int number = 0;
  return at < numbers.size() && absl::SimpleAtoi(numbers[at], &number)
             ? number
             : kFirst + i;
}

UniqueFd CopyOf(const UniqueFd& fd) {
  return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace

absl::StatusOr<KeptDescriptors> KeptDescriptors::FromEnvironment() {
  KeptDescriptors descriptors;
  descriptors.has_keeper_ = HasServiceManager();
  int process = 0;
  int count = 0;
  if (!absl::SimpleAtoi(TextOf("LISTEN_PID"), &process) ||
      process != getpid() || !absl::SimpleAtoi(TextOf("LISTEN_FDS"), &count) ||
      count <= 0) {
    return descriptors;
  }
  if (!descriptors.has_keeper_) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "LISTEN_FDS is %d, and NOTIFY_SOCKET is not set: pandod binds its "
        "sockets itself, and takes none over but from a keeper; start it "
        "without socket activation",
        count));
  }
  const std::vector<std::string> names =
      absl::StrSplit(TextOf("LISTEN_FDNAMES"), ':');
  const std::vector<std::string> numbers =
      absl::StrSplit(TextOf(kNumbers), ':');
  for (int i = 0; i < count; ++i) {
    UniqueFd fd(NumberOf(i, numbers));
    if (fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
      fd.release();  // not open
      continue;
    }
    // If two have the same name, the first one counts.
    const auto at = static_cast<size_t>(i);
    if (at < names.size()) {
      descriptors.kept_.try_emplace(names[at], Kept{std::move(fd)});
    }
  }
  for (const char* variable :
       {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", kNumbers}) {
    unsetenv(variable);
  }
  return descriptors;
}

UniqueFd KeptDescriptors::Take(const std::string& name) {
  UniqueFd fd = Look(name);
  if (fd.valid()) kept_.at(name).is_taken = true;
  return fd;
}

UniqueFd KeptDescriptors::Look(const std::string& name) const {
  const auto found = kept_.find(name);
  if (found == kept_.end() || found->second.is_taken) return UniqueFd();
  return CopyOf(found->second.fd);
}

uint64_t KeptDescriptors::BytesOf(const std::string& name) const {
  const auto found = kept_.find(name);
  struct stat info;
  if (found == kept_.end() || fstat(found->second.fd.get(), &info) != 0) {
    return 0;
  }
  return static_cast<uint64_t>(info.st_size);
}

void KeptDescriptors::Keep(const std::string& name, const UniqueFd& fd) {
  if (!has_keeper_) return;
  Forget(name);
  kept_.emplace(name, Kept{CopyOf(fd), /*is_taken=*/true});
  has_keeper_ = TellServiceManager(
      absl::StrCat("FDSTORE=1\nFDPOLL=0\nFDNAME=", name), fd.get());
}

void KeptDescriptors::Forget(const std::string& name) {
  if (kept_.erase(name) == 0) return;
  TellServiceManager(absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", name));
}

void KeptDescriptors::ForgetRest() {
  for (auto it = kept_.begin(); it != kept_.end();) {
    if (it->second.is_taken) {
      ++it;
      continue;
    }
    Log(LogLevel::kWarning, "what was kept for this pandod is given up",
        {{"name", it->first}, {"bytes", BytesOf(it->first)}});
    TellServiceManager(absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", it->first));
    it = kept_.erase(it);
  }
}

void KeptDescriptors::ShutDownRest() {
  for (const auto& [name, kept] : kept_) {
    if (kept.is_taken) continue;
    shutdown(kept.fd.get(), SHUT_RDWR);  // has no effect on memory
  }
}

void KeptDescriptors::Abandon() {
  for (auto& [name, kept] : kept_) kept.is_taken = false;
  ShutDownRest();
  ForgetRest();
  has_keeper_ = false;
}

void KeptDescriptors::PassOn() const {
  std::string names;
  std::string numbers;
  for (const auto& [name, kept] : kept_) {
    const char* const colon = names.empty() ? "" : ":";
    absl::StrAppend(&names, colon, name);
    absl::StrAppend(&numbers, colon, kept.fd.get());
    fcntl(kept.fd.get(), F_SETFD, 0);  // stays open
  }
  setenv("LISTEN_PID", absl::StrCat(getpid()).c_str(), 1);
  setenv("LISTEN_FDS", absl::StrCat(kept_.size()).c_str(), 1);
  setenv("LISTEN_FDNAMES", names.c_str(), 1);
  setenv(kNumbers, numbers.c_str(), 1);
}

}  // namespace pando
