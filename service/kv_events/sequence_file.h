#ifndef PANDO_SERVICE_KV_EVENTS_SEQUENCE_FILE_H_
#define PANDO_SERVICE_KV_EVENTS_SEQUENCE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace pando {

// Counts frames, and goes on where an earlier process ended, however it ended:
// routers take a number that goes back for a stale one. The next number is in a
// mapped file, so that counting is one store into memory. Not thread-safe.
//
// The file lives as long as the folder of the sockets, which a reboot empties.
// Without it the count begins at the wall clock's microseconds: ahead of all
// earlier numbers, as no process publishes a million frames a second.
class SequenceFile {
 public:
  // Makes the file if it is not there. Errors: a file that is no sequence file,
  // which is somebody else's; one in which another process counts; a symbolic
  // link; no room.
  static absl::StatusOr<std::unique_ptr<SequenceFile>> Open(
      const std::string& path, absl::Time now);
  ~SequenceFile();
  SequenceFile(const SequenceFile&) = delete;
  SequenceFile& operator=(const SequenceFile&) = delete;

  // Each is one more than the one before.
  uint64_t Next();

 private:
  struct Content;

  SequenceFile(UniqueFd file, Content* content)
      : file_(std::move(file)), content_(content) {}

  const UniqueFd file_;     // holds the lock
  Content* const content_;  // the mapped file
};

}  // namespace pando

#endif  // PANDO_SERVICE_KV_EVENTS_SEQUENCE_FILE_H_
