#include "base/default_socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/str_format.h"

namespace pando {
namespace {

// Modes of the folders. Other users may look into /run/pando, but not into the
// folder of one user. Sockets have modes of their own.
constexpr mode_t kFolderMode = 0755;
constexpr mode_t kPrivateMode = 0700;

struct Place {
  std::string folder;
  // Other users may write to the parent folder, so this folder is used only if
  // it is this user's alone.
  bool is_exposed = false;

  std::string socket() const { return folder + "/pando.sock"; }
};

std::vector<Place> Places() {
  const char* const given = std::getenv("XDG_RUNTIME_DIR");
  const std::string runtime = given != nullptr && *given == '/'
                                  ? given
                                  : absl::StrFormat("/run/user/%u", geteuid());
  return {{"/run/pando"},
          {runtime + "/pando"},
          {absl::StrFormat("/tmp/pando-%u", geteuid()), /*is_exposed=*/true}};
}

bool MayWrite(const std::string& folder) {
  return access(folder.c_str(), W_OK | X_OK) == 0;
}

bool MayWriteOrMake(const std::string& folder) {
  if (MayWrite(folder)) return true;
  return errno == ENOENT &&
         MayWrite(std::filesystem::path(folder).parent_path());
}

bool IsOwn(const std::string& folder) {
  struct stat file;
  return lstat(folder.c_str(), &file) == 0 && S_ISDIR(file.st_mode) &&
         file.st_uid == geteuid() && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

std::string SocketToServe() {
  const std::vector<Place> places = Places();
  for (const Place& place : places) {
    if (MayWriteOrMake(place.folder)) return place.socket();
  }
  return places.back().socket();
}

std::string SocketToCall() {
  std::string existing;
  for (const Place& place : Places()) {
    if (place.is_exposed && !IsOwn(place.folder)) continue;
    const std::string socket = place.socket();
    if (access(socket.c_str(), W_OK) == 0) return socket;
    if (existing.empty() && errno != ENOENT) existing = socket;
  }
  return existing.empty() ? SocketToServe() : existing;
}

std::string DefaultAddress() {
  const char* const given = std::getenv("PANDO_ADDRESS");
  if (given != nullptr && *given != '\0') return given;
  return "unix:" + SocketToCall();
}

absl::Status MakeDefaultSocketFolder(const std::string& path) {
  for (const Place& place : Places()) {
    if (path != place.socket()) continue;
    const mode_t mode =
        place.folder == "/run/pando" ? kFolderMode : kPrivateMode;
    if (mkdir(place.folder.c_str(), mode) != 0 && errno != EEXIST) {
      return absl::ErrnoToStatus(errno, "make the folder " + place.folder);
    }
    if (place.is_exposed && !IsOwn(place.folder)) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "the folder %s of the default socket is not user %u's alone; choose "
          "another with --socket",
          place.folder, geteuid()));
    }
  }
  return absl::OkStatus();
}

}  // namespace pando
