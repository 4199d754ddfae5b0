#ifndef PANDO_KEEPER_DESCRIPTOR_STORE_H_
#define PANDO_KEEPER_DESCRIPTOR_STORE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace pando::keeper {

// The descriptors that pandod has given to the keeper, for the next pandod
// after its death. The messages are those of systemd's store,
// sd_pid_notify_with_fds(3). Not thread-safe.
class DescriptorStore {
 public:
  // The most descriptors. pandod gives far fewer: a pool has at most 250
  // shards.
  static constexpr size_t kMost = 1024;

  struct Kept {
    std::string name;
    UniqueFd fd;
  };

  // Carries a message out: FDSTORE=1 keeps its descriptors under the name
  // FDNAME, FDSTOREREMOVE=1 closes those that have this name. Returns false if
  // the message is not for the store.
  bool Take(std::string_view message, std::vector<UniqueFd> descriptors);

  const std::vector<Kept>& kept() const { return kept_; }

 private:
  std::vector<Kept> kept_;
};

}  // namespace pando::keeper

#endif  // PANDO_KEEPER_DESCRIPTOR_STORE_H_
