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

// The things that a call asks of a tier when the memory has been searched.
struct AskedOfTier {
  SessionId session;
  std::span<const BlockKeys> keys;
  // Those that have places are in use.
  bool uses = false;
  // Those that are not in the memory are looked for.
  bool looks = false;
  // With `looks`: those that the shapes of `keys` need are loaded. They are
  // pending from then on, unless there is no room for them.
  bool loads = false;
};

// The work of one call at a tier, in steps, between which others run. Owned by
// the call, used in the turn; all that it is given outlives it.
class BlockLook {
 public:
  struct Parts {
    KeptBlocks* kept;
    BlockStores* stores;
    BlockLoads* loads;
  };

  // `places` has an answer for each key; those of blocks that are being loaded
  // become pending.
  BlockLook(const Parts& parts, const AskedOfTier& asked,
            std::span<BlockPlace> places)
      : parts_(parts), asked_(asked), places_(places) {}

  // Does a part of the work: at most KeptBlocks::kMostNames keys, or a look at
  // the answers to one of `keys`. Returns whether all is done.
  bool Step();
  // How many of the keys are not in the memory, but in the tier.
  uint32_t found() const { return found_; }

 private:
  // One of the asked keys.
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
  std::span<BlockPlace> places_;  // of the keys that are not begun
  size_t next_ = 0;               // of asked_.keys
  std::optional<Keys> keys_;      // those under way
  std::vector<KeysOfKind> used_;
  uint32_t found_ = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_LOOK_H_
