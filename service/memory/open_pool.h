#ifndef PANDO_SERVICE_MEMORY_OPEN_POOL_H_
#define PANDO_SERVICE_MEMORY_OPEN_POOL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gpu/kv_layout.h"
#include "service/options/options.h"

namespace pando {

// A pool that takes its layout from the first worker that attaches. A cache of
// it cannot be made before, so pandod begins anew with the layout among its
// options: nothing ever sees half a pool. Owned by Server; runs on the polling
// thread.
class OpenPool {
 public:
  // Called with the options that say the layout, as flags of pandod, until it
  // is OK: pandod begins anew with them then. An error says why it could not.
  using OnLayout =
      std::function<absl::Status(const std::vector<std::string>& flags)>;

  // POOL_OPEN, for what needs pages.
  static absl::Status HasNoPages();

  // `options` are those that were given.
  OpenPool(Options options, OnLayout on_layout)
      : options_(std::move(options)), on_layout_(std::move(on_layout)) {}

  // A layout was taken, and pandod is about to begin anew.
  bool is_taken() const { return is_taken_; }

  // The size that the pool will have.
  uint64_t shard_bytes() const { return options_.pool_bytes; }

  // Takes the layout and the model of the first worker. An error names what
  // differs from the options, or cannot be: nothing is taken then.
  // REQUIRES: !is_taken().
  absl::Status Take(const KvShape& shape, const std::string& model);

 private:
  const Options options_;
  const OnLayout on_layout_;
  bool is_taken_ = false;
};

// The options of a pandod whose pool is open, until it has a layout: with the
// smallest pool, which no worker may attach, and without what needs pages.
Options WithoutPages(Options options);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_OPEN_POOL_H_
