#include "tests/core/block_model.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace pando {

BlockModel::Block* BlockModel::Find(uint32_t kind, uint32_t generation,
                                    const std::string& key) {
  for (Block& block : blocks_) {
    if (block.kind == kind && block.generation == generation &&
        block.key == key && block.state != Block::kDetached) {
      return &block;
    }
  }
  return nullptr;
}

uint32_t BlockModel::FollowersOf(const Block& block) const {
  uint32_t count = 0;
  for (const Block& other : blocks_) count += other.before == &block ? 1 : 0;
  return count;
}

bool BlockModel::IsLeaf(const Block& block) const {
  return block.state == Block::kReady && block.locks == 0 &&
         FollowersOf(block) == 0;
}

BlockPlace BlockModel::Look(Block* block) const {
  if (block == nullptr) return kMissingBlock;
  if (block->state == Block::kReady) return BlockPlace(block->place);
  return IsOverdue(*block) ? kMissingBlock : kPendingBlock;
}

std::vector<BlockModel::Block*> BlockModel::Search(
    const Keys& keys, std::vector<BlockPlace>& answers, bool peeks) {
  std::vector<Block*> found(keys.keys.size());
  std::vector<BlockPlace> own(keys.keys.size(), kNotLookedAt);
  const auto look = [&](size_t i) {
    found[i] = Find(keys.kind, keys.generation, keys.keys[i]);
    return Look(found[i]);
  };
  if (keys.shape == BlockShape::kEach || keys.shape == BlockShape::kPrefix) {
    for (size_t i = 0; i < own.size(); ++i) {
      own[i] = look(i);
      if (keys.shape == BlockShape::kPrefix && !IsPlace(own[i])) break;
    }
  } else {
    const size_t window =
        keys.shape == BlockShape::kCheckpoint ? 1 : keys.window;
    size_t row = 0;
    size_t i = own.size();
    while (i > 0 && row < window) {
      --i;
      own[i] = look(i);
      row = IsPlace(own[i]) ? row + 1 : 0;
    }
    // The answer uses only the row of found blocks that ends the search.
    for (size_t j = i + row; j < own.size(); ++j) {
      if (IsPlace(own[j])) own[j] = kNotLookedAt;
    }
  }
  for (size_t i = 0; i < own.size(); ++i) {
    if (!IsPlace(own[i])) found[i] = nullptr;
    if (found[i] != nullptr && !peeks) found[i]->used = use_;
  }
  answers.insert(answers.end(), own.begin(), own.end());
  return found;
}

std::vector<BlockPlace> BlockModel::Lookup(std::span<const Keys> keys,
                                           bool peeks) {
  ++use_;
  std::vector<BlockPlace> answers;
  for (const Keys& k : keys) Search(k, answers, peeks);
  return answers;
}

std::vector<BlockPlace> BlockModel::Acquire(const HoldName& name,
                                            std::span<const Keys> keys,
                                            bool all) {
  if (const Hold* const hold = FindHold(name)) return hold->places;
  ++use_;
  Hold hold;
  bool suffices = true;
  for (const Keys& k : keys) {
    const size_t before = hold.places.size();
    const auto found = Search(k, hold.places, /*peeks=*/false);
    hold.blocks.insert(hold.blocks.end(), found.begin(), found.end());
    const auto begin = hold.places.begin() + static_cast<ptrdiff_t>(before);
    const bool is_row =
        k.shape == BlockShape::kWindow || k.shape == BlockShape::kCheckpoint;
    if (begin == hold.places.end()) continue;
    suffices =
        suffices && (is_row ? std::any_of(begin, hold.places.end(), IsPlace)
                            : std::all_of(begin, hold.places.end(), IsPlace));
  }
  if (all && !suffices) {
    for (BlockPlace& place : hold.places) {
      if (IsPlace(place)) place = kReadyBlock;
    }
    return hold.places;
  }
  bool is_empty = true;
  for (Block* block : hold.blocks) {
    if (block == nullptr) continue;
    ++block->locks;
    is_empty = false;
  }
  if (!is_empty) holds_[name] = hold;
  return hold.places;
}

std::string BlockModel::Reserve(const HoldName& name,
                                std::span<const Keys> keys, bool all,
                                std::span<const BlockPlace> answers) {
  if (const Hold* const hold = FindHold(name)) {
    return std::equal(answers.begin(), answers.end(), hold->places.begin(),
                      hold->places.end())
               ? ""
               : "a repeat got another answer";
  }
  ++use_;
  Hold hold;
  size_t next = 0;
  std::vector<uint32_t> full_kinds;  // the call asks for no more room in these
  const bool is_full = all && std::find(answers.begin(), answers.end(),
                                        kNoRoomForBlock) != answers.end();
  // An undone call does not tell which blocks it had reserved, so the model
  // cannot follow it. Other tests cover `all`.
  if (is_full) return "undone";
  for (const Keys& k : keys) {
    Block* before =
        k.before.empty() ? nullptr : Find(k.kind, k.generation, k.before);
    for (const std::string& key : k.keys) {
      const BlockPlace answer = answers[next++];
      Block* block = Find(k.kind, k.generation, key);
      const auto link = [&] {
        if (block->before == nullptr && before != block) block->before = before;
      };
      if (block != nullptr && !IsOverdue(*block)) {
        const bool is_ready = block->state == Block::kReady;
        if (answer != (is_ready ? kReadyBlock : kPendingBlock)) {
          return absl::StrCat("key ", next - 1, " is there, but got ",
                              answer.value());
        }
        link();
        if (is_ready) block->used = use_;
        hold.blocks.push_back(nullptr);
      } else {
        if (block != nullptr) {
          Unlink(*block);
          block->state = Block::kDetached;
        }
        hold.blocks.push_back(nullptr);
        if (answer == kNoRoomForBlock) {
          const bool is_known = std::find(full_kinds.begin(), full_kinds.end(),
                                          k.kind) != full_kinds.end();
          if (!is_known && OldestLeaf(k, before) != nullptr) {
            return "there was a leaf";
          }
          full_kinds.push_back(k.kind);
          block = nullptr;
        } else {
          if (!IsPlace(answer)) return "a missing key got no place";
          if (std::string error = Take(k, answer.value(), before);
              !error.empty()) {
            return error;
          }
          block = &blocks_.emplace_back();
          block->kind = k.kind;
          block->generation = k.generation;
          block->key = key;
          block->place = answer.value();
          block->reserved_at = now;
          link();
          hold.blocks.back() = block;
        }
      }
      hold.places.push_back(answer);
      before = block;
    }
  }
  if (std::any_of(hold.blocks.begin(), hold.blocks.end(),
                  [](const Block* b) { return b != nullptr; })) {
    holds_[name] = hold;
  }
  return "";
}

BlockModel::Block* BlockModel::OldestLeaf(const Keys& keys, const Block* but) {
  Block* oldest = nullptr;
  for (Block& block : blocks_) {
    if (block.kind != keys.kind || block.generation != keys.generation ||
        &block == but || !IsLeaf(block)) {
      continue;
    }
    if (oldest == nullptr || std::pair(block.used, block.place) <
                                 std::pair(oldest->used, oldest->place)) {
      oldest = &block;
    }
  }
  return oldest;
}

std::string BlockModel::Take(const Keys& keys, uint32_t place,
                             const Block* but) {
  const uint32_t end = place + block_places_[keys.kind];
  const uint32_t extent = place / extent_places_;
  if ((end - 1) / extent_places_ != extent) return "a block crosses extents";
  std::vector<Block*> own;
  std::vector<Block*> others;
  bool has_own = false;
  bool is_overlapped = false;
  // A kind without a leaf may give up an extent of its own.
  const bool has_leaf = OldestLeaf(keys, but) != nullptr;
  for (Block& block : blocks_) {
    if (block.place / extent_places_ != extent) continue;
    const bool is_own =
        block.kind == keys.kind && block.generation == keys.generation;
    const bool overlaps =
        block.place < end && place < block.place + block_places_[block.kind];
    if (!is_own) others.push_back(&block);
    has_own = has_own || is_own;
    if (is_own && !has_leaf) own.push_back(&block);
    if (!overlaps || !is_own) continue;
    if (block.place != place) return "blocks of a kind overlap in part";
    is_overlapped = true;
    if (!has_leaf) continue;
    if (block.state != Block::kReady || block.locks > 0) {
      return "what is held was evicted";
    }
    if (&block != OldestLeaf(keys, but)) {
      return absl::StrCat("evicted was ", block.key, ", but not the oldest");
    }
    own.push_back(&block);
  }
  if (!has_own) {
    const std::optional<uint32_t> from =
        others.empty() ? std::nullopt : std::optional(others.front()->kind);
    std::string error = CheckQuotas(keys.kind, from);
    if (!error.empty()) return error;
  }
  if (!has_leaf && !is_overlapped) own.clear();
  for (Block* block : own) {
    if (block->state != Block::kReady || block->locks > 0 || block == but) {
      return "what is held was evicted";
    }
  }
  for (Block* block : own) Erase(*block);
  if (!others.empty() && is_overlapped) return "an extent has two kinds";
  for (Block* block : others) {
    if (block->state != Block::kReady || block->locks > 0 || block == but) {
      return "an extent with what is held was taken";
    }
  }
  for (Block* block : others) Erase(*block);
  return "";
}

const BlockModel::Quota* BlockModel::QuotaOf(uint32_t kind) const {
  for (const Quota& quota : quotas_) {
    if (std::find(quota.kinds.begin(), quota.kinds.end(), kind) !=
        quota.kinds.end()) {
      return &quota;
    }
  }
  return nullptr;
}

size_t BlockModel::ExtentsOf(const Quota& quota) const {
  std::set<uint32_t> extents;
  for (const Block& block : blocks_) {
    if (QuotaOf(block.kind) == &quota) {
      extents.insert(block.place / extent_places_);
    }
  }
  return extents.size();
}

std::string BlockModel::CheckQuotas(uint32_t to,
                                    std::optional<uint32_t> from) const {
  const Quota* const gaining = QuotaOf(to);
  const Quota* const losing = from.has_value() ? QuotaOf(*from) : nullptr;
  if (losing != nullptr && losing == gaining) return "";
  if (gaining != nullptr && ExtentsOf(*gaining) >= gaining->cap) {
    return "a quota got more than its cap";
  }
  if (losing != nullptr && ExtentsOf(*losing) <= losing->floor) {
    return "a quota was taken below its floor";
  }
  return "";
}

void BlockModel::Unlink(Block& block) {
  block.before = nullptr;
  for (Block& other : blocks_) {
    if (other.before == &block) other.before = nullptr;
  }
}

void BlockModel::Erase(Block& block) {
  Unlink(block);
  blocks_.remove_if([&](const Block& other) { return &other == &block; });
}

bool BlockModel::HasEnded(const Block& block) const {
  return std::find(ended_.begin(), ended_.end(),
                   std::pair(block.kind, block.generation)) != ended_.end();
}

uint32_t BlockModel::Publish(const HoldName& name,
                             std::span<const uint32_t> indices) {
  const auto it = holds_.find(name);
  if (it == holds_.end()) {
    return static_cast<uint32_t>(std::max<size_t>(indices.size(), 1));
  }
  ++use_;
  Hold& hold = it->second;
  std::vector<uint32_t> all;
  for (uint32_t i = static_cast<uint32_t>(hold.places.size()); i > 0; --i) {
    all.push_back(i - 1);
  }
  uint32_t unknown = 0;
  for (uint32_t i :
       indices.empty() ? all : std::vector(indices.begin(), indices.end())) {
    Block* const block = hold.blocks[i];
    if (block == nullptr) {
      unknown += indices.empty() ? 0 : 1;
      continue;
    }
    hold.blocks[i] = nullptr;
    hold.places[i] = kReadyBlock;
    if (HasEnded(*block)) {
      Erase(*block);
      continue;
    }
    if (block->state == Block::kDetached) {
      Block* const other = Find(block->kind, block->generation, block->key);
      if (other != nullptr && other->state == Block::kReady) {
        Erase(*block);
        continue;
      }
      if (other != nullptr) {
        Unlink(*other);
        other->state = Block::kDetached;
      }
    }
    block->state = Block::kReady;
    block->used = use_;
  }
  if (std::all_of(hold.blocks.begin(), hold.blocks.end(),
                  [](const Block* b) { return b == nullptr; })) {
    holds_.erase(it);
  }
  return unknown;
}

void BlockModel::GiveUp(Hold& hold, size_t index, bool is_reservation) {
  Block* const block = hold.blocks[index];
  hold.blocks[index] = nullptr;
  hold.places[index] = kMissingBlock;
  if (is_reservation) {
    Erase(*block);
  } else if (--block->locks == 0 && HasEnded(*block)) {
    Erase(*block);
  }
}

uint32_t BlockModel::Discard(const HoldName& name,
                             std::span<const uint32_t> indices) {
  const auto it = holds_.find(name);
  if (it == holds_.end()) {
    return static_cast<uint32_t>(std::max<size_t>(indices.size(), 1));
  }
  ++use_;
  Hold& hold = it->second;
  uint32_t unknown = 0;
  for (size_t i = 0; i < hold.blocks.size(); ++i) {
    if (indices.empty() && hold.blocks[i] != nullptr) GiveUp(hold, i, true);
  }
  for (uint32_t i : indices) {
    if (hold.blocks[i] == nullptr) {
      ++unknown;
    } else {
      GiveUp(hold, i, true);
    }
  }
  if (std::all_of(hold.blocks.begin(), hold.blocks.end(),
                  [](const Block* b) { return b == nullptr; })) {
    holds_.erase(it);
  }
  return unknown;
}

bool BlockModel::Release(const HoldName& name) {
  const auto it = holds_.find(name);
  if (it == holds_.end()) return false;
  for (size_t i = 0; i < it->second.blocks.size(); ++i) {
    if (it->second.blocks[i] != nullptr) {
      GiveUp(it->second, i, std::get<1>(name));
    }
  }
  holds_.erase(it);
  return true;
}

bool BlockModel::HoldsAnything(uint32_t session) const {
  return std::any_of(holds_.begin(), holds_.end(), [&](const auto& hold) {
    return std::get<0>(hold.first) == session;
  });
}

void BlockModel::EndSession(uint32_t session) {
  std::vector<HoldName> names;
  for (const auto& [name, hold] : holds_) {
    if (std::get<0>(name) == session) names.push_back(name);
  }
  for (const HoldName& name : names) Release(name);
}

void BlockModel::Quarantine(uint32_t session, uint32_t as) {
  std::vector<HoldName> names;
  for (const auto& [name, hold] : holds_) {
    if (std::get<0>(name) == session) names.push_back(name);
  }
  for (const HoldName& name : names) {
    Hold hold = holds_[name];
    holds_.erase(name);
    for (Block* block : hold.blocks) {
      if (block == nullptr || !std::get<1>(name)) continue;
      if (block->state == Block::kWritten) {
        Unlink(*block);
        block->state = Block::kDetached;
      }
    }
    holds_[{as, std::get<1>(name), std::get<2>(name)}] = hold;
  }
}

void BlockModel::Restart(uint32_t as) {
  holds_.clear();
  for (Block& block : blocks_) {
    const bool is_written = block.state != Block::kReady;
    if (!is_written && block.locks == 0) continue;
    Hold& hold = holds_[{as, is_written, 1}];
    hold.places.push_back(BlockPlace(block.place));
    hold.blocks.push_back(&block);
    if (is_written) {
      Unlink(block);
      block.state = Block::kDetached;
    } else {
      block.locks = 1;
    }
  }
}

void BlockModel::EndKind(uint32_t kind, uint32_t generation) {
  ended_.emplace_back(kind, generation);
  std::vector<Block*> lost;
  for (Block& block : blocks_) {
    if (block.kind == kind && block.generation == generation &&
        block.state == Block::kReady && block.locks == 0) {
      lost.push_back(&block);
    }
  }
  for (Block* block : lost) Erase(*block);
}

}  // namespace pando
