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

// Blocks, the naive way: lists that are searched from the beginning. It knows
// exactly what a BlockCache answers, but for the places of new blocks: those it
// is told, and it judges whether the cache might take what was there.
class BlockModel {
 public:
  struct Block {
    uint32_t kind = 0;  // of the test; see generation
    uint32_t generation = 0;
    std::string key;
    enum { kWritten, kDetached, kReady } state = kWritten;
    uint32_t place = 0;
    uint64_t used = 0;
    int64_t reserved_at = 0;  // seconds
    uint32_t locks = 0;
    Block* before = nullptr;
  };
  // A lock or a reservation: what it answered for each key, and the block if
  // it is one.
  struct Hold {
    std::vector<BlockPlace> places;
    std::vector<Block*> blocks;
  };
  using HoldName = std::tuple<uint32_t, bool, uint64_t>;  // session, is
                                                          // reservation, id
  struct Keys {
    uint32_t kind = 0;
    uint32_t generation = 0;
    std::vector<std::string> keys;
    std::string before;
    BlockShape shape = BlockShape::kEach;
    uint32_t window = 0;

    friend bool operator==(const Keys&, const Keys&) = default;
  };

  // `block_places` by kind.
  BlockModel(std::vector<uint32_t> block_places, uint32_t extent_places)
      : block_places_(std::move(block_places)), extent_places_(extent_places) {}

  int64_t now = 0;

  std::vector<BlockPlace> Lookup(std::span<const Keys> keys, bool peeks);
  std::vector<BlockPlace> Acquire(const HoldName& name,
                                  std::span<const Keys> keys, bool all);
  // `answers` are those of the cache. Returns what is wrong with them.
  std::string Reserve(const HoldName& name, std::span<const Keys> keys,
                      bool all, std::span<const BlockPlace> answers);
  uint32_t Publish(const HoldName& name, std::span<const uint32_t> indices);
  uint32_t Discard(const HoldName& name, std::span<const uint32_t> indices);
  // Whether there was one.
  bool Release(const HoldName& name);

  // Ends the holds of a session; those that it was to write are kept, and its
  // locks, under another number, while it is in quarantine.
  void EndSession(uint32_t session);
  void Quarantine(uint32_t session, uint32_t as);
  // The process is another one. All that sessions have locked, once each, and
  // all that they were to write belongs to session `as`.
  void Restart(uint32_t as);
  // No session has this generation open any more, and it is not the newest.
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
  // Takes what is at the place of a new block away. Returns what is wrong.
  std::string Take(const Keys& keys, uint32_t place, const Block* but);
  void Unlink(Block& block);
  void Erase(Block& block);
  void GiveUp(Hold& hold, size_t index, bool is_reservation);
  bool HasEnded(const Block& block) const;

  const std::vector<uint32_t> block_places_;
  const uint32_t extent_places_;
  std::list<Block> blocks_;
  std::map<HoldName, Hold> holds_;
  std::vector<std::pair<uint32_t, uint32_t>> ended_;
  uint64_t use_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_BLOCK_MODEL_H_
