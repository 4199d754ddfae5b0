#ifndef PANDO_OS_SOCKETS_UNIX_LISTENER_H_
#define PANDO_OS_SOCKETS_UNIX_LISTENER_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "os/keeping/kept_descriptors.h"

namespace pando {

// A Unix socket to serve on, and who may connect to it.
struct UnixSocket {
  std::string path;
  mode_t mode = 0660;
  // The group of the file; none: the group of this process.
  std::optional<gid_t> group = {};
  // Where the socket is kept for the next process, and under which name. If
  // `kept` is null, it is not kept.
  KeptDescriptors* kept = nullptr;
  std::string kept_name = {};
};

// A listening, non-blocking stream socket and its file; the destructor removes
// the file. Owned by the server that accepts from it.
class UnixListener {
 public:
  // Takes over a socket that is kept, in which callers wait that connected
  // meanwhile. Otherwise makes a new one, in place of a socket file whose
  // server is gone. If a server answers at the path, or the file is no socket,
  // it leaves the file alone and returns an error.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(
      const UnixSocket& socket);
  // Removes the file, unless another one has taken its place.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  using FileId = std::pair<dev_t, ino_t>;

  // Identifies the file at the path; none if there is no file.
  static std::optional<FileId> FileAt(const std::string& path);

  UnixListener(std::string path, UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)), file_(FileAt(path_)) {}

  const std::string path_;
  const UniqueFd fd_;
  const std::optional<FileId> file_;
};

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_UNIX_LISTENER_H_
