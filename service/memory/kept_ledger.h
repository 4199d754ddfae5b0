#ifndef PANDO_SERVICE_MEMORY_KEPT_LEDGER_H_
#define PANDO_SERVICE_MEMORY_KEPT_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ledger.h"
#include "os/keeping/kept_descriptors.h"
#include "os/shared_memory.h"

namespace pando {

// The names under which the keeper has them.
inline constexpr char kBlockLedger[] = "block-ledger";
inline constexpr char kPageLedger[] = "page-ledger";

// Whether the ledger that begins with `start` is given up, see KeptLedgers.
bool IsGivenUp(const LedgerStart& start);

// The ledgers of pandod (base/ledger.h), in memory that a keeper may
// keep for the next pandod. A ledger is given up after three crashes of pandods
// within a minute of their start (a pandod that serves for a minute resets the
// count), or if three pandods in a row died before they served.
//
// Owned by Server, longer than the cache that uses the ledgers; not
// thread-safe.
class KeptLedgers {
 public:
  // `kept` outlives this.
  explicit KeptLedgers(KeptDescriptors* kept) : kept_(kept) {}
  KeptLedgers(const KeptLedgers&) = delete;
  KeptLedgers& operator=(const KeptLedgers&) = delete;
  // This is an end in order, whether pandod has served or not.
  ~KeptLedgers();

  struct Ledger {
    std::string name;     // what is kept under it
    std::string content;  // for messages: "blocks"
    uint64_t bytes;
    // Whether a ledger of an earlier pandod describes the memory of this one.
    std::function<bool(std::span<std::byte>)> is_usable;
  };
  // Returns the memory of the ledger that is kept under this name, if it is
  // usable; else new memory, which is kept from now on. A crash of this process
  // counts against it.
  absl::StatusOr<std::span<std::byte>> Open(const Ledger& ledger);
  // Makes the ledger that is kept under this name invalid, if there is one:
  // this pandod may change the memory that it describes.
  void Spoil(const std::string& name);
  // Notes that this pandod serves.
  void Serves();
  // Notes that it has served so long that no ledger can be the reason for a
  // crash any more.
  void IsSteady();

 private:
  void CountCrashes() const;

  KeptDescriptors* const kept_;
  std::vector<SharedMemory> ledgers_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_KEPT_LEDGER_H_
