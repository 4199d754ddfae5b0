#include "tiers/blocks/store_notes.h"

#include <utility>

namespace pando {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;

}  // namespace

size_t StoreNotes::BytesOf(const StoreNote& note) {
  size_t bytes = sizeof(StoreNote);
  for (const KeysOfKind& keys : *note.keys) {
    bytes += sizeof(KeysOfKind) + keys.keys.size();
  }
  return bytes;
}

size_t StoreNotes::CountBlocks(const StoreNote& note, const KeptBlocks& kinds) {
  size_t blocks = 0;
  for (const KeysOfKind& keys : *note.keys) {
    const auto kind = kinds.Find(keys.kind);
    if (kind != nullptr) blocks += keys.keys.size() / kind->kind.key_bytes;
  }
  return blocks;
}

void StoreNotes::Add(StoreNote note, size_t blocks, BlockTierCounts& counts) {
  const size_t bytes = BytesOf(note);
  const size_t most = note.is_use ? kMostBytes / 2 : kMostBytes;
  if (is_closed_ || bytes_ + bytes > most) {
    counts.dropped_blocks += blocks;
    return;
  }
  bytes_ += bytes;
  notes_.push_back(std::move(note));
}

StoreNote StoreNotes::Take() {
  StoreNote note = std::move(notes_.front());
  notes_.pop_front();
  bytes_ -= BytesOf(note);
  return note;
}

std::deque<StoreNote> StoreNotes::Close() {
  is_closed_ = true;
  bytes_ = 0;
  return std::exchange(notes_, {});
}

}  // namespace pando
