#include "events/routers/sequence_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pando {
namespace {

constexpr uint64_t kMagic = 0x3176716573646e50;  // "Pndseqv1"

}  // namespace

struct SequenceFile::Content {
  uint64_t magic;
  std::atomic<uint64_t> next;
};

absl::StatusOr<std::unique_ptr<SequenceFile>> SequenceFile::Open(
    const std::string& path, absl::Time now) {
  const auto failed = [&](const char* what) {
    return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
  };
  UniqueFd file(
      open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return failed("open");
  struct stat status;
  if (fstat(file.get(), &status) != 0) return failed("stat");
  const auto size = static_cast<size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || (size != 0 && size != sizeof(Content))) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has ", size, " bytes and is no sequence file"));
  }
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("lock");
    return absl::FailedPreconditionError(
        absl::StrCat("another server counts its frames in ", path,
                     "; choose another with --socket, whose name without its "
                     "ending it has"));
  }
  // A new file is all zeros. A store into a page of the file for which there is
  // no room would end the process, so the room is taken now.
  errno = posix_fallocate(file.get(), 0, sizeof(Content));
  if (errno != 0) return failed("make room for");
  void* const memory = mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE,
                            MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return failed("map");
  auto* const content = static_cast<Content*>(memory);
  std::unique_ptr<SequenceFile> sequence(
      new SequenceFile(std::move(file), content));
  if (content->magic == kMagic) return sequence;
  if (content->magic != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is no sequence file"));
  }
  content->next = static_cast<uint64_t>(absl::ToUnixMicros(now));
  content->magic = kMagic;
  return sequence;
}

SequenceFile::~SequenceFile() { munmap(content_, sizeof(Content)); }

uint64_t SequenceFile::Next() {
  return content_->next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace pando
