#ifndef PANDO_TIERS_BLOCKS_BLOCK_LOOK_H_
#define PANDO_TIERS_BLOCKS_BLOCK_LOOK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/requests/block_requests.h"
#include "tiers/blocks/block_loads.h"
#include "tiers/blocks/block_stores.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// Says what a call asks of a tier after it has searched the memory.
struct AskedOfTier {
  SessionId session;
  std::span<const BlockKeys> keys;
  // Whether keys that have places count as used.
  bool uses = false;
  // Whether the tier is searched for keys that are not in the memory.
  bool looks = false;
  // Whether the blocks that the shapes of `keys` need are loaded; needs
  // `looks`. Their answers become pending, unless there is no room for them.
  bool loads = false;
};

// The work of one call at a tier. It is done in steps, between which other
// calls run. Owned by the call, and used in the turn. All its arguments must
// outlive it.
class BlockLook {
 public:
  struct Parts {
    KeptBlocks* kept;
    BlockStores* stores;
    BlockLoads* loads;
  };

  // `places` has the answer of the memory for each key. The answers of missing
  // blocks that are being loaded become pending.
  BlockLook(const Parts& parts, const AskedOfTier& asked,
            std::span<BlockPlace> places)
      : parts_(parts), asked_(asked), places_(places) {}

  // Does a part of the work: at most KeptBlocks::kMostNames keys, or a look at
  // the answers to one of `keys`. Returns whether all is done.
  bool Step();
  // Returns how many of the keys are not in the memory but in the tier.
  uint32_t found() const { return found_; }

 private:
  // The entry of asked_.keys that is being worked on.
  struct Keys {
    std::shared_ptr<KnownKind> kind;
    std::span<BlockPlace> answers;
    KeysOfKind used;
    std::vector<bool> kept;
    size_t next_key = 0;
    std::vector<uint32_t> wanted;
    size_t next_wanted = 0;
  };

  const BlockKeys& asked_keys() const { return asked_.keys[next_]; }
  bool BeginKeys();
  void LookAtSome();
  void LoadSome();
  void EndKeys();

  const Parts parts_;
  const AskedOfTier asked_;
  std::span<BlockPlace> places_;  // answers for keys that have not begun
  size_t next_ = 0;               // index in asked_.keys
  std::optional<Keys> keys_;      // none between two entries
  // The keys that count as used; they are given to BlockStores at the end.
  std::vector<KeysOfKind> used_;
  uint32_t found_ = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_LOOK_H_
