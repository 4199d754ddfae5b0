#ifndef PANDO_SERVICE_MEMORY_OPEN_POOL_H_
#define PANDO_SERVICE_MEMORY_OPEN_POOL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gpu/kv_layout.h"
#include "os/keeping/kept_descriptors.h"
#include "service/options/options.h"

namespace pando {

// A pool that takes its layout from the first worker that attaches. The cache
// cannot be made before the layout is known. So pandod begins anew, with the
// layout among its options, and no code ever sees half a pool. Owned by Server;
// runs on the polling thread.
class OpenPool {
 public:
  // Called with the options of the layout, as flags of pandod. If it returns
  // OK, pandod is about to begin anew with these flags, and it is not called
  // again. An error says why pandod could not; then it may be called again.
  using OnLayout =
      std::function<absl::Status(const std::vector<std::string>& flags)>;

  // Returns POOL_OPEN, the error of calls that need pages.
  static absl::Status HasNoPages();

  // `options` are the options that pandod was started with.
  OpenPool(Options options, OnLayout on_layout)
      : options_(std::move(options)), on_layout_(std::move(on_layout)) {}

  // Returns whether a layout was taken, so that pandod is about to begin anew.
  bool is_taken() const { return is_taken_; }

  // Returns the bytes that each shard of the pool will have.
  uint64_t shard_bytes() const { return options_.pool_bytes; }

  // Takes the layout and the model of the first worker. Returns LAYOUT_MISMATCH
  // if they differ from given options, which it names, and INVALID_FIELD if the
  // pool cannot have such a layout; then nothing is taken. REQUIRES:
  // !is_taken().
  absl::Status Take(const KvShape& shape, const std::string& model);

 private:
  const Options options_;
  const OnLayout on_layout_;
  bool is_taken_ = false;
};

// Keeps the flags of a layout for the pandod after this one; none: forgets what
// was kept.
void KeepLayout(const std::vector<std::string>& flags, KeptDescriptors& kept);
// Returns the flags that KeepLayout has kept, if the ledger of the pandod
// before has sessions that may go on and use the pool; else nothing.
std::vector<std::string> KeptLayout(KeptDescriptors& kept);
// Returns OK if `begun`, the options with kept flags, differ from `given` only
// where nothing was stated; else an error that names the option.
absl::Status CheckKeptLayout(const Options& given, const Options& begun);

// Returns the options of a pandod whose pool is open, until it has a layout:
// with the smallest pool, which no worker may attach, and without everything
// that needs pages.
Options WithoutPages(Options options);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_OPEN_POOL_H_
