#include "core/block_calls/block_search.h"

#include <algorithm>
#include <array>

#include "base/status_macros.h"

namespace pando {
namespace {

constexpr size_t kMany = BlockTable::kManyKeys;

// The blocks of keys [begin, end), at most kMany of them.
std::array<BlockNumber, kMany> Find(const CacheParts& parts,
                                    const OpenKeys& keys, size_t begin,
                                    size_t end) {
  std::array<BlockNumber, kMany> found;
  const size_t bytes = keys.kind->key_bytes();
  parts.blocks.FindMany(
      *keys.kind, keys.keys->keys.substr(begin * bytes, (end - begin) * bytes),
      std::span(found).first(end - begin));
  return found;
}

}  // namespace

absl::Status BlockSearch::Answer(Context& context, const OpenKeys& keys) {
  switch (keys.keys->shape) {
    case BlockShape::kEach:
    case BlockShape::kPrefix:
      return AnswerForwards(context, keys);
    case BlockShape::kWindow:
      return AnswerRow(context, keys, keys.keys->window);
    case BlockShape::kCheckpoint:
      return AnswerRow(context, keys, 1);
  }
  return absl::OkStatus();
}

bool BlockSearch::Suffices(BlockShape shape,
                           std::span<const BlockPlace> answers) const {
  if (answers.empty()) return true;
  if (shape == BlockShape::kEach || shape == BlockShape::kPrefix) {
    return std::all_of(answers.begin(), answers.end(), IsPlace);
  }
  return std::any_of(answers.begin(), answers.end(), IsPlace);
}

absl::Status BlockSearch::AnswerForwards(Context& context,
                                         const OpenKeys& keys) {
  const bool is_prefix = keys.keys->shape == BlockShape::kPrefix;
  while (next_key() < keys.count && context.work > 0) {
    const size_t begin = next_key();
    const size_t end = std::min(keys.count, begin + kMany);
    const auto found = Find(context.parts, keys, begin, end);
    for (size_t i = begin; i < end; ++i) {
      const BlockNumber block = found[i - begin];
      RETURN_IF_ERROR(Use(context, *keys.kind, block));
      if (!is_prefix || IsPlace(Look(context.parts, block))) continue;
      while (next_key() < keys.count) Append(context, kNotLookedAt);
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

// This takes one step, so that no block of the row is evicted before the row is
// used.
absl::Status BlockSearch::AnswerRow(Context& context, const OpenKeys& keys,
                                    uint32_t window) {
  if (context.work == 0) return absl::OkStatus();
  std::vector<BlockNumber> row;   // the row so far, last block first
  std::vector<BlockPlace> after;  // answers behind the row, last one first
  for (size_t end = keys.count; end > 0 && row.size() < window;) {
    const size_t begin = end - std::min(end, kMany);
    const auto found = Find(context.parts, keys, begin, end);
    for (size_t i = end; i > begin && row.size() < window; --i) {
      const BlockNumber block = found[i - 1 - begin];
      const BlockPlace place = Look(context.parts, block);
      if (IsPlace(place)) {
        row.push_back(block);
        continue;
      }
      after.insert(after.end(), row.size(), kNotLookedAt);
      after.push_back(place);
      row.clear();
    }
    end = begin;
  }
  TakeWork(context, static_cast<uint32_t>(row.size() + after.size()));
  const size_t before = keys.count - row.size() - after.size();
  for (size_t i = 0; i < before; ++i) Append(context, kNotLookedAt);
  for (size_t i = row.size(); i > 0; --i) {
    RETURN_IF_ERROR(Use(context, *keys.kind, row[i - 1]));
  }
  for (size_t i = after.size(); i > 0; --i) {
    Count(context, *keys.kind, after[i - 1]);
    Append(context, after[i - 1]);
  }
  return absl::OkStatus();
}

BlockPlace BlockSearch::Look(const CacheParts& parts, BlockNumber block) {
  if (block == kNoBlock) return kMissingBlock;
  const BlockRecord& record = parts.blocks.At(block);
  if (record.block_state() == BlockState::kReady) {
    return parts.blocks.CanLock(block) ? parts.blocks.memory().PlaceOf(block)
                                       : kMissingBlock;
  }
  return parts.blocks.IsOverdue(record) ? kMissingBlock : kPendingBlock;
}

void BlockSearch::Count(const Context& context, Kind& kind,
                        BlockPlace answer) const {
  if (peeks_ || context.session.is_internal) return;
  KindCounters& counters = kind.counters;
  counters.hits += IsPlace(answer) ? 1 : 0;
  counters.misses += answer == kMissingBlock ? 1 : 0;
  counters.pending += answer == kPendingBlock ? 1 : 0;
}

absl::Status BlockSearch::Use(Context& context, Kind& kind, BlockNumber block) {
  CacheParts& parts = context.parts;
  const BlockPlace place = Look(parts, block);
  bool has_moved = false;
  if (IsPlace(place) && context.hold != nullptr) {
    RETURN_IF_ERROR(parts.sessions.CheckMoreLockedBlocks(context.session));
    has_moved = parts.blocks.Lock(kind, block);
  } else if (IsPlace(place) && !peeks_) {
    has_moved = parts.blocks.Touch(kind, block);
  }
  Count(context, kind, place);
  TakeWork(context, has_moved ? 1 + kLeafWork : 1);
  Append(context, place);
  return absl::OkStatus();
}

}  // namespace pando
