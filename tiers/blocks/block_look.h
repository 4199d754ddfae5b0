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
#include "tiers/blocks/disk_block_tier.h"
#include "tiers/blocks/kept_blocks.h"
#include "tiers/blocks/shared_block_tier.h"

namespace pando {

// Says what a call asks of the tiers after it has searched the memory.
struct AskedOfTier {
  SessionId session;
  std::span<const BlockKeys> keys;
  // Whether keys that have places count as used.
  bool uses = false;
  // Whether the tiers are searched for keys that are not in the memory.
  bool looks = false;
  // Whether the blocks that the shapes of `keys` need are loaded; needs
  // `looks`. Their answers become pending, unless there is no room for them.
  bool loads = false;
};

// The work of one call at the tiers of blocks. It is done in steps, between
// which other calls run. Owned by the call, and used in the turn. All its
// arguments must outlive it.
class BlockLook {
 public:
  struct Parts {
    KeptBlocks* kept;
    DiskBlockTier* disk;      // may be null
    SharedBlockTier* shared;  // may be null
  };

  // `places` has the answer of the memory for each key. The answers of missing
  // blocks that are being loaded become pending.
  BlockLook(const Parts& parts, const AskedOfTier& asked,
            std::span<BlockPlace> places)
      : parts_(parts), asked_(asked), places_(places) {}

  // Does a part of the work: at most KeptBlocks::kMostNames keys, or a look at
  // the answers to one of `keys`. Returns whether all is done.
  bool Step();
  // Returns how many of the keys are not in the memory but on disk.
  uint32_t found() const { return found_; }

 private:
  // The entry of asked_.keys that is being worked on.
  struct Keys {
    std::shared_ptr<KnownKind> kind;
    std::span<BlockPlace> answers;
    KeysOfKind used;
    std::vector<bool> on_disk;
    std::vector<SharedAsks::Known> shared;
    size_t next_key = 0;
    std::vector<uint32_t> wanted;  // of those on disk
    size_t next_wanted = 0;
  };

  // Tells the tiers which keys were used.
  void TellUses();
  const BlockKeys& asked_keys() const { return asked_.keys[next_]; }
  bool BeginKeys();
  void LookAtSome();
  // Looks for some missing keys in the tiers.
  void LookForMissing(const std::vector<uint32_t>& missing,
                      const std::vector<BlockName>& names);
  // Chooses what is loaded. What is on disk comes from there; the shared store
  // is asked for the rest.
  void ChooseLoads();
  // Asks the shared store for all keys that it may have; `first` is the
  // position of the first one that is needed. Returns whether there will be an
  // answer.
  bool AskShared(uint32_t first);
  // Returns whether the shape of the keys may need a missing key.
  bool MayMatter(uint32_t position) const;
  // Makes the answer of a missing key pending.
  void SetPending(uint32_t position);
  void LoadSome();
  void EndKeys();

  const Parts parts_;
  const AskedOfTier asked_;
  std::span<BlockPlace> places_;  // answers for keys that have not begun
  size_t next_ = 0;               // index in asked_.keys
  std::optional<Keys> keys_;      // none between two entries
  // The keys that count as used; the tiers are told at the end.
  std::vector<KeysOfKind> used_;
  uint32_t found_ = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_LOOK_H_
