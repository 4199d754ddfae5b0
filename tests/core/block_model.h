#ifndef PANDO_TESTS_CORE_BLOCK_MODEL_H_
#define PANDO_TESTS_CORE_BLOCK_MODEL_H_

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/requests/block_requests.h"

namespace pando {

// A naive model of BlockCache: lists that are searched from the beginning. The
// model predicts every answer of the cache except the places of new blocks. The
// test passes those places in, and the model judges whether the cache was
// allowed to take them.
class BlockModel {
 public:
  struct Block {
    uint32_t kind = 0;  // the test's number; see generation
    uint32_t generation = 0;
    std::string key;
    enum { kWritten, kDetached, kReady } state = kWritten;
    uint32_t place = 0;
    uint64_t used = 0;
    int64_t reserved_at = 0;  // seconds
    uint32_t locks = 0;
    Block* before = nullptr;
  };
  // A lock or a reservation: the answer for each key, and the block if the
  // answer is a place.
  struct Hold {
    std::vector<BlockPlace> places;
    std::vector<Block*> blocks;
  };
  // The session, true for a reservation or false for a lock, and the id.
  using HoldName = std::tuple<uint32_t, bool, uint64_t>;
  struct Keys {
    uint32_t kind = 0;
    uint32_t generation = 0;
    std::vector<std::string> keys;
    std::string before;
    BlockShape shape = BlockShape::kEach;
    uint32_t window = 0;

    friend bool operator==(const Keys&, const Keys&) = default;
  };

  // The kinds of one quota, and how many extents they may have.
  struct Quota {
    std::vector<uint32_t> kinds;
    size_t floor = 0;
    size_t cap = 0;
  };

  // `block_places` has the number of places of a block, for each kind. A kind
  // is in one quota, or in none.
  BlockModel(std::vector<uint32_t> block_places, uint32_t extent_places,
             std::vector<Quota> quotas)
      : block_places_(std::move(block_places)),
        extent_places_(extent_places),
        quotas_(std::move(quotas)) {}

  int64_t now = 0;

  std::vector<BlockPlace> Lookup(std::span<const Keys> keys, bool peeks);
  std::vector<BlockPlace> Acquire(const HoldName& name,
                                  std::span<const Keys> keys, bool all);
  // `answers` are the answers of the cache. Returns a description of the first
  // error in them, or an empty string.
  std::string Reserve(const HoldName& name, std::span<const Keys> keys,
                      bool all, std::span<const BlockPlace> answers);
  uint32_t Publish(const HoldName& name, std::span<const uint32_t> indices);
  uint32_t Discard(const HoldName& name, std::span<const uint32_t> indices);
  // Returns whether there was a lock or a reservation of this name.
  bool Release(const HoldName& name);

  // End a session. EndSession releases the locks and reservations of the
  // session. Quarantine moves both to the session number `as`, and detaches the
  // blocks that the session was writing.
  void EndSession(uint32_t session);
  void Quarantine(uint32_t session, uint32_t as);
  // Models a restart of the process. All blocks that sessions had locked, with
  // one lock each, and all blocks that sessions were to write then belong to
  // session `as`.
  void Restart(uint32_t as);
  // Ends a generation of a kind that is not the newest and that no session has
  // open any more.
  void EndKind(uint32_t kind, uint32_t generation);

  const Hold* FindHold(const HoldName& name) const {
    const auto it = holds_.find(name);
    return it == holds_.end() ? nullptr : &it->second;
  }
  bool HoldsAnything(uint32_t session) const;
  Block* Find(uint32_t kind, uint32_t generation, const std::string& key);
  const std::list<Block>& blocks() const { return blocks_; }
  uint32_t FollowersOf(const Block& block) const;
  bool IsOverdue(const Block& block) const {
    return block.state != Block::kReady && now - block.reserved_at >= 30;
  }

 private:
  BlockPlace Look(Block* block) const;
  std::vector<Block*> Search(const Keys& keys, std::vector<BlockPlace>& answers,
                             bool peeks);
  bool IsLeaf(const Block& block) const;
  Block* OldestLeaf(const Keys& keys, const Block* but);
  // Removes the blocks that are at the place of a new block. Returns a
  // description of an error, or an empty string.
  std::string Take(const Keys& keys, uint32_t place, const Block* but);
  // Returns a description of the error if a quota forbids that a block of kind
  // `to` goes into an extent that has blocks of kind `from` (none: of no kind).
  std::string CheckQuotas(uint32_t to, std::optional<uint32_t> from) const;
  const Quota* QuotaOf(uint32_t kind) const;
  size_t ExtentsOf(const Quota& quota) const;
  void Unlink(Block& block);
  void Erase(Block& block);
  void GiveUp(Hold& hold, size_t index, bool is_reservation);
  bool HasEnded(const Block& block) const;

  const std::vector<uint32_t> block_places_;
  const uint32_t extent_places_;
  const std::vector<Quota> quotas_;
  std::list<Block> blocks_;
  std::map<HoldName, Hold> holds_;
  std::vector<std::pair<uint32_t, uint32_t>> ended_;
  uint64_t use_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_BLOCK_MODEL_H_
