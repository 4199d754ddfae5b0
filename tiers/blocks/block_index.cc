#include "tiers/blocks/block_index.h"

#include <utility>

namespace pando {

struct BlockIndex::Blocks {
  struct Block {
    uint64_t bytes = 0;
    uint64_t use = 0;
    bool is_stored = false;
    std::list<PageHash>::iterator place;  // in by_use, once it is stored
  };

  explicit Blocks(uint64_t of) : kind(of) {}

  const uint64_t kind;
  absl::flat_hash_map<PageHash, Block> by_key;
  std::list<PageHash> by_use;  // the oldest use first
  uint64_t bytes = 0;
};

void BlockIndex::BlocksDeleter::operator()(Blocks* blocks) const {
  delete blocks;
}

bool BlockIndex::Has(const BlockName& name) const {
  const auto kind = kinds_.find(name.kind);
  if (kind == kinds_.end()) return false;
  const auto block = kind->second->by_key.find(name.key);
  return block != kind->second->by_key.end() && block->second.is_stored;
}

BlockIndex::Blocks& BlockIndex::BlocksOf(uint64_t kind) {
  Garbage& blocks = kinds_[kind];
  if (blocks == nullptr) blocks.reset(new Blocks(kind));
  return *blocks;
}

bool BlockIndex::BeginStore(const BlockName& name, uint64_t bytes,
                            std::vector<BlockName>& evicted) {
  if (bytes > max_bytes_) return false;
  const auto kind = kinds_.find(name.kind);
  if (kind != kinds_.end() && kind->second->by_key.contains(name.key)) {
    return false;
  }
  while (used_bytes_ + bytes > max_bytes_) {
    Blocks* const oldest = Oldest();
    if (oldest == nullptr) return false;
    evicted.push_back({oldest->kind, oldest->by_use.front()});
    Remove(*oldest, evicted.back().key);
  }
  Blocks& blocks = BlocksOf(name.kind);
  blocks.by_key[name.key] = {.bytes = bytes, .place = blocks.by_use.end()};
  blocks.bytes += bytes;
  used_bytes_ += bytes;
  return true;
}

bool BlockIndex::EndStore(const BlockName& name, bool is_written) {
  const auto kind = kinds_.find(name.kind);
  if (kind == kinds_.end()) return false;
  Blocks& blocks = *kind->second;
  const auto it = blocks.by_key.find(name.key);
  if (it == blocks.by_key.end()) return false;
  if (!is_written) {
    Remove(blocks, name.key);
    return false;
  }
  Blocks::Block& block = it->second;
  block.is_stored = true;
  block.use = ++last_use_;
  block.place = blocks.by_use.insert(blocks.by_use.end(), name.key);
  ++count_;
  return true;
}

bool BlockIndex::Restore(const BlockName& name, uint64_t bytes) {
  if (used_bytes_ + bytes > max_bytes_) return false;
  std::vector<BlockName> none;
  return BeginStore(name, bytes, none) && EndStore(name, true);
}

void BlockIndex::Touch(const BlockName& name) {
  if (!Has(name)) return;
  Blocks& blocks = *kinds_.at(name.kind);
  Blocks::Block& block = blocks.by_key.at(name.key);
  block.use = ++last_use_;
  blocks.by_use.splice(blocks.by_use.end(), blocks.by_use, block.place);
}

void BlockIndex::Forget(const BlockName& name) {
  if (Has(name)) Remove(*kinds_.at(name.kind), name.key);
}

BlockIndex::Garbage BlockIndex::ForgetKind(uint64_t kind) {
  const auto it = kinds_.find(kind);
  if (it == kinds_.end()) return nullptr;
  Garbage blocks = std::move(it->second);
  kinds_.erase(it);
  used_bytes_ -= blocks->bytes;
  count_ -= blocks->by_use.size();
  return blocks;
}

BlockIndex::Blocks* BlockIndex::Oldest() const {
  Blocks* oldest = nullptr;
  uint64_t least = 0;
  for (const auto& [kind, blocks] : kinds_) {
    if (blocks->by_use.empty()) continue;
    const uint64_t use = blocks->by_key.at(blocks->by_use.front()).use;
    if (oldest != nullptr && use >= least) continue;
    oldest = blocks.get();
    least = use;
  }
  return oldest;
}

void BlockIndex::Remove(Blocks& blocks, const PageHash& key) {
  const auto it = blocks.by_key.find(key);
  if (it->second.is_stored) {
    blocks.by_use.erase(it->second.place);
    --count_;
  }
  blocks.bytes -= it->second.bytes;
  used_bytes_ -= it->second.bytes;
  blocks.by_key.erase(it);
  if (blocks.by_key.empty()) kinds_.erase(blocks.kind);
}

}  // namespace pando
