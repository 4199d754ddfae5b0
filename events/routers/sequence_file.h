#ifndef PANDO_EVENTS_ROUTERS_SEQUENCE_FILE_H_
#define PANDO_EVENTS_ROUTERS_SEQUENCE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace pando {

// Numbers the frames, and goes on where an earlier process stopped, even if
// that crashed: routers take a number lower than the last one for a stale
// frame. The next number is in a mapped file, so that counting is one store
// into memory. Not thread-safe.
//
// The file is in the folder of the sockets, which a reboot empties. Without it
// the count begins at the wall clock's microseconds: that is ahead of all
// earlier numbers, as no process publishes a million frames a second.
class SequenceFile {
 public:
  // Creates the file if it does not exist. Fails when it is no sequence file,
  // another process counts in it, it is a symbolic link, or the disk is full.
  static absl::StatusOr<std::unique_ptr<SequenceFile>> Open(
      const std::string& path, absl::Time now);
  ~SequenceFile();
  SequenceFile(const SequenceFile&) = delete;
  SequenceFile& operator=(const SequenceFile&) = delete;

  // The next number, one more than the one before.
  uint64_t Next();

 private:
  struct Content;

  SequenceFile(UniqueFd file, Content* content)
      : file_(std::move(file)), content_(content) {}

  const UniqueFd file_;     // holds the lock
  Content* const content_;  // the mapped file
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_SEQUENCE_FILE_H_
