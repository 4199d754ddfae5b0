#ifndef PANDO_OS_KEEPING_KEPT_DESCRIPTORS_H_
#define PANDO_OS_KEEPING_KEPT_DESCRIPTORS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando {

// The descriptors that outlive this process. It gives them to a keeper, and
// takes over those that the process before it has given away. A keeper is
// systemd with a file descriptor store, or pando-keeper; both speak
// sd_listen_fds(3) and sd_pid_notify_with_fds(3).
//
// Owned by main, and used by its thread alone. All descriptors are
// close-on-exec until PassOn.
class KeptDescriptors {
 public:
  // Makes an object without a keeper: there is nothing to take over, and
  // nothing is kept.
  KeptDescriptors() = default;
  // Takes the descriptors that this process was started with, unless they are
  // meant for another process. Returns FAILED_PRECONDITION if they are not from
  // a keeper. To be called before there are threads, because it changes the
  // environment.
  static absl::StatusOr<KeptDescriptors> FromEnvironment();
  KeptDescriptors(KeptDescriptors&&) = default;
  KeptDescriptors& operator=(KeptDescriptors&&) = default;

  // Returns whether there is a keeper that takes descriptors.
  bool has_keeper() const { return has_keeper_; }
  // Returns a descriptor of what is kept under this name. It is not valid if
  // there is nothing, or if it was taken before.
  UniqueFd Take(const std::string& name);
  // The same, but it does not count as taken, so ForgetRest gives it up.
  UniqueFd Look(const std::string& name) const;
  // Returns the bytes of the file that is kept under this name, or 0 if there
  // is none.
  uint64_t BytesOf(const std::string& name) const;
  // Keeps `fd` under this name from now on, in place of what was kept there. If
  // the keeper does not read its messages, it counts as no keeper from now on.
  void Keep(const std::string& name, const UniqueFd& fd);
  // Gives up what is kept under this name.
  void Forget(const std::string& name);
  // Gives up everything kept that was not taken.
  void ForgetRest();
  // Makes kept sockets that were not taken stop listening, even if the keeper
  // has not closed them yet.
  void ShutDownRest();
  // Gives up everything that is kept, and keeps nothing from now on. Kept
  // sockets refuse connections at once; otherwise they would seem to have a
  // server until the keeper has closed them.
  void Abandon();
  // Leaves what is kept to the pandod that this process is about to execute.
  // The descriptors keep their numbers, so threads that use them may go on.
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
