#include "os/keeping/kept_descriptors.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "os/service_manager.h"

namespace pando {
namespace {

constexpr int kFirst = 3;  // of the descriptors that are handed down

std::string TextOf(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

UniqueFd CopyOf(const UniqueFd& fd) {
  return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace

KeptDescriptors KeptDescriptors::FromEnvironment() {
  KeptDescriptors descriptors;
  descriptors.has_keeper_ = HasServiceManager();
  int process = 0;
  int count = 0;
  if (!absl::SimpleAtoi(TextOf("LISTEN_PID"), &process) ||
      process != getpid() || !absl::SimpleAtoi(TextOf("LISTEN_FDS"), &count) ||
      count <= 0) {
    return descriptors;
  }
  const std::vector<std::string> names =
      absl::StrSplit(TextOf("LISTEN_FDNAMES"), ':');
  for (int i = 0; i < count; ++i) {
    UniqueFd fd(kFirst + i);
    if (fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
      fd.release();  // not open
      continue;
    }
    // The first of two with one name counts.
    const auto at = static_cast<size_t>(i);
    if (at < names.size()) {
      descriptors.kept_.try_emplace(names[at], Kept{std::move(fd)});
    }
  }
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
    unsetenv(variable);
  }
  return descriptors;
}

UniqueFd KeptDescriptors::Take(const std::string& name) {
  const auto found = kept_.find(name);
  if (found == kept_.end() || found->second.is_taken) return UniqueFd();
  found->second.is_taken = true;
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
  if (kept_.erase(name) > 0) {
    TellServiceManager(absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", name));
  }
  kept_.emplace(name, Kept{CopyOf(fd), /*is_taken=*/true});
  has_keeper_ = TellServiceManager(
      absl::StrCat("FDSTORE=1\nFDPOLL=0\nFDNAME=", name), fd.get());
}

void KeptDescriptors::ForgetRest() {
  for (auto it = kept_.begin(); it != kept_.end();) {
    if (it->second.is_taken) {
      ++it;
      continue;
    }
    TellServiceManager(absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", it->first));
    it = kept_.erase(it);
  }
}

void KeptDescriptors::Abandon() {
  for (auto& [name, kept] : kept_) {
    shutdown(kept.fd.get(), SHUT_RDWR);  // has no effect on memory
    kept.is_taken = false;
  }
  ForgetRest();
  has_keeper_ = false;
}

void KeptDescriptors::PassOn() const {
  std::vector<int> copies;
  std::string names;
  const int beyond = kFirst + static_cast<int>(kept_.size());
  for (const auto& [name, kept] : kept_) {
    absl::StrAppend(&names, names.empty() ? "" : ":", name);
    copies.push_back(fcntl(kept.fd.get(), F_DUPFD_CLOEXEC, beyond));
  }
  for (size_t i = 0; i < copies.size(); ++i) {
    dup2(copies[i], kFirst + static_cast<int>(i));
  }
  setenv("LISTEN_PID", absl::StrCat(getpid()).c_str(), 1);
  setenv("LISTEN_FDS", absl::StrCat(copies.size()).c_str(), 1);
  setenv("LISTEN_FDNAMES", names.c_str(), 1);
}

}  // namespace pando
