#ifndef PANDO_OS_KEEPING_KEPT_DESCRIPTORS_H_
#define PANDO_OS_KEEPING_KEPT_DESCRIPTORS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando {

// The descriptors that outlive this process: it gives them to a keeper, and
// takes over those that the process before it has given away. A keeper is
// systemd with a file descriptor store, or pando-keeper; both speak
// sd_listen_fds(3) and sd_pid_notify_with_fds(3).
//
// Owned by main, and used by its thread alone. Descriptors are all
// close-on-exec, until PassOn.
class KeptDescriptors {
 public:
  // Without a keeper: there is nothing to take over, and nothing is kept.
  KeptDescriptors() = default;
  // Takes the descriptors that this process was started with, unless they are
  // another's. Before there are threads, as it changes the environment.
  // FAILED_PRECONDITION: they are not a keeper's.
  static absl::StatusOr<KeptDescriptors> FromEnvironment();
  KeptDescriptors(KeptDescriptors&&) = default;
  KeptDescriptors& operator=(KeptDescriptors&&) = default;

  bool has_keeper() const { return has_keeper_; }
  // A descriptor of what is kept under this name. Not valid: there is none, or
  // it was taken.
  UniqueFd Take(const std::string& name);
  // The size of the file that is kept under this name; 0: there is none.
  uint64_t BytesOf(const std::string& name) const;
  // From now on this is kept under the name, in place of what was. A keeper
  // that does not read its messages is none.
  void Keep(const std::string& name, const UniqueFd& fd);
  // Nothing is kept any more that was not taken.
  void ForgetRest();
  // Sockets that were not taken do not listen any more, though the keeper may
  // not have closed them yet.
  void ShutDownRest();
  // Nothing is kept any more, nor from now on. Sockets refuse connections at
  // once: until the keeper has closed them, they seem to have a server.
  void Abandon();
  // Leaves what is kept to the pandod that this process is about to execute.
  // Its threads may go on: their descriptors stay as they are.
  void PassOn() const;

 private:
  struct Kept {
    UniqueFd fd;
    bool is_taken = false;
  };

  bool has_keeper_ = false;
  std::map<std::string, Kept> kept_;
};

}  // namespace pando

#endif  // PANDO_OS_KEEPING_KEPT_DESCRIPTORS_H_
