#ifndef PANDO_TOOLS_PANDOCTL_SHARED_PREFIXES_H_
#define PANDO_TOOLS_PANDOCTL_SHARED_PREFIXES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pando/v1/events.pb.h"

namespace pando::ctl {

// A prefix that several machines hold.
struct SharedPrefix {
  std::string hash;  // its last page's
  std::optional<std::string> extra_key;
  uint64_t tokens = 0;  // from the start of the prompt
  std::vector<size_t> machines;
  // The bytes that all copies but one take, for the pages that no other entry
  // counts.
  uint64_t duplicated_bytes = 0;
};

// The pages of all machines of a fleet, told apart by their hashes. Not
// thread-safe.
class FleetPages {
 public:
  // Records that `machine` holds these pages, each of `page_bytes` bytes.
  // REQUIRES: parents are added before their children, and machines in
  // ascending order.
  void Add(size_t machine, const v1::BlocksStored& stored, uint64_t page_bytes);

  struct Totals {
    // How many different pages are held by no machine, by one, by two, and so
    // on.
    std::vector<uint64_t> pages_by_holders;
    uint64_t duplicated_bytes = 0;
  };
  Totals totals() const;

  // Returns the fewest prefixes that say, for each page on several machines,
  // which machines hold it; those that take the most bytes come first.
  std::vector<SharedPrefix> SharedPrefixes() const;

 private:
  struct Page {
    std::string hash;
    std::optional<std::string> extra_key;
    size_t parent = 0;  // itself: none
    uint64_t tokens = 0;
    std::vector<size_t> machines;
    uint64_t duplicated_bytes = 0;
  };

  std::vector<Page> pages_;  // parents first
  absl::flat_hash_map<std::string, size_t> index_;
};

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_SHARED_PREFIXES_H_
