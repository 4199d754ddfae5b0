#ifndef PANDO_SERVICE_SOCKETS_UNIX_LISTENER_H_
#define PANDO_SERVICE_SOCKETS_UNIX_LISTENER_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando {

// A Unix socket to serve on, and who may connect to it.
struct UnixSocket {
  std::string path;
  mode_t mode = 0660;
  // The group of the file; none: that of this process.
  std::optional<gid_t> group = {};
};

// A listening, non-blocking stream socket and its file, which is removed with
// it. Owned by who serves on it.
class UnixListener {
 public:
  // Takes the place of one whose server is gone; an error if a server answers
  // there, or if what is there is no socket: it is then left alone.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(
      const UnixSocket& socket);
  // Leaves a file alone that has taken the place of its own.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  using FileId = std::pair<dev_t, ino_t>;

  // Of what is at the path; none: nothing.
  static std::optional<FileId> FileAt(const std::string& path);

  UnixListener(std::string path, UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)), file_(FileAt(path_)) {}

  const std::string path_;
  const UniqueFd fd_;
  const std::optional<FileId> file_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SOCKETS_UNIX_LISTENER_H_
