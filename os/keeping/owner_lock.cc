#include "os/keeping/owner_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pando {
namespace {

constexpr char kOwner[] = "owner";
// The earlier owner may be about to end, so locking is tried for five seconds.
constexpr int kOwnerTries = 500;
constexpr std::chrono::milliseconds kOwnerPause{10};

}  // namespace

absl::StatusOr<UniqueFd> OwnKept(KeptDescriptors& kept) {
  if (!kept.has_keeper()) return UniqueFd();
  UniqueFd shared = kept.Take(kOwner);
  if (!shared.valid()) {
    kept.ForgetRest();
    shared = UniqueFd(memfd_create("pando-owner", MFD_CLOEXEC));
    if (!shared.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
    kept.Keep(kOwner, shared);
  }
  const std::string path = absl::StrCat("/proc/self/fd/", shared.get());
  UniqueFd own(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!own.valid())
    return absl::ErrnoToStatus(errno, "opening the owner's file");
  for (int i = 0; i < kOwnerTries; ++i) {
    if (flock(own.get(), LOCK_EX | LOCK_NB) == 0) return own;
    std::this_thread::sleep_for(kOwnerPause);
  }
  return absl::AlreadyExistsError(
      "another pandod, which lives, owns the sockets and the memory that the "
      "keeper has given to this one");
}

}  // namespace pando
