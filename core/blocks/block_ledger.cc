#include "core/blocks/block_ledger.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "core/blocks/block_record.h"

namespace pando {
namespace {

constexpr uint64_t RoundUpToPage(uint64_t bytes) {
  return (bytes + kLedgerPage - 1) / kLedgerPage * kLedgerPage;
}

LedgerText TextOf(const std::optional<std::string>& text) {
  LedgerText out = {};
  if (!text.has_value()) return out;
  CHECK(text->size() <= LedgerText::kMaxBytes);
  out.is_set = 1;
  out.bytes = static_cast<uint16_t>(text->size());
  std::memcpy(out.data, text->data(), text->size());
  return out;
}

std::string StringOf(const LedgerText& text) {
  return {text.data, std::min<size_t>(text.bytes, LedgerText::kMaxBytes)};
}

std::optional<std::string> OptionalOf(const LedgerText& text) {
  if (text.is_set == 0) return std::nullopt;
  return StringOf(text);
}

// The FNV-1a hash of the facts. A kind whose facts are damaged is not taken
// over.
uint32_t CheckOf(const KindFacts& facts, uint32_t number) {
  uint32_t hash = 2'166'136'261 ^ number;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&facts);
  for (size_t i = offsetof(KindFacts, generation); i < sizeof(facts); ++i) {
    hash = (hash ^ bytes[i]) * 16'777'619;
  }
  return hash;
}

// Offsets of the parts of a ledger, and their sizes, in bytes.
struct Layout {
  uint64_t extents_at;
  uint64_t records_at;
  uint64_t records_bytes;  // the records of one extent
  uint64_t bytes;
};

Layout LayoutOf(const BlockOptions& options) {
  const uint64_t extents = options.memory_bytes / options.extent_bytes;
  const uint64_t slots =
      std::min(options.extent_bytes / kPlaceBytes, kMaxBlocksOfExtent);
  Layout layout;
  layout.extents_at =
      kLedgerPage + RoundUpToPage(kMaxKinds * sizeof(KindFacts));
  layout.records_at =
      layout.extents_at + RoundUpToPage(extents * sizeof(ExtentFacts));
  layout.records_bytes =
      RoundUpToPage(slots * (sizeof(BlockRecord) + kMaxKeyBytes));
  layout.bytes = layout.records_at + extents * layout.records_bytes;
  return layout;
}

}  // namespace

uint64_t BlockLedger::BytesFor(const BlockOptions& options) {
  return LayoutOf(options).bytes;
}

bool BlockLedger::IsOf(const BlockOptions& options) {
  if (options.ledger.size() != BytesFor(options)) return false;
  const LedgerHeader& header = HeaderOf(options.ledger);
  return header.magic == kLedgerMagic &&
         header.memory_bytes == options.memory_bytes &&
         header.extent_bytes == options.extent_bytes &&
         header.memory_id == options.memory_id;
}

void BlockLedger::Complete(std::span<std::byte> ledger) {
  StoresBefore();
  HeaderOf(ledger).magic = kLedgerMagic;
}

BlockLedger::BlockLedger(const BlockOptions& options) {
  const Layout layout = LayoutOf(options);
  std::byte* memory = options.ledger.data();
  if (options.ledger.empty()) {
    // Pages of it that are never touched take no memory.
    own_.reset(std::calloc(layout.bytes, 1));
    memory = static_cast<std::byte*>(own_.get());
    CHECK(memory != nullptr);
  }
  header_ = reinterpret_cast<LedgerHeader*>(memory);
  kinds_ = reinterpret_cast<KindFacts*>(memory + kLedgerPage);
  extents_ = reinterpret_cast<ExtentFacts*>(memory + layout.extents_at);
  records_ = memory + layout.records_at;
  records_bytes_ = layout.records_bytes;
  if (header_->magic == kLedgerMagic) {
    CHECK(IsOf(options));
    is_of_before_ = true;
    ++header_->recoveries;
    header_->kind_cells = std::min(header_->kind_cells, kMaxKinds);
  } else {
    header_->memory_bytes = options.memory_bytes;
    header_->extent_bytes = options.extent_bytes;
    header_->memory_id = options.memory_id;
  }
  ++header_->starts;
  for (uint32_t cell = kind_cells(); cell-- > 0;) {
    if (!KindIn(cell).has_value()) free_cells_.push_back(cell);
  }
}

uint32_t BlockLedger::AddKind(const BlockKind& kind) {
  if (free_cells_.empty()) {
    CHECK(header_->kind_cells < kMaxKinds);
    free_cells_.push_back(header_->kind_cells++);
  }
  const uint32_t cell = free_cells_.back();
  free_cells_.pop_back();
  KindFacts& facts = kinds_[cell];
  facts.generation = kind.generation;
  facts.key_bytes = kind.spec.key_bytes;
  facts.shards = kind.spec.shards;
  facts.shard_bytes = kind.spec.shard_bytes;
  facts.is_bigram = kind.spec.ns.bigram;
  facts.extra_key = TextOf(kind.spec.ns.extra_key);
  facts.cache_salt = TextOf(kind.spec.ns.cache_salt);
  facts.identity = TextOf(kind.spec.identity);
  facts.label = TextOf(kind.spec.label);
  facts.check = CheckOf(facts, kind.number.value());
  StoresBefore();
  facts.number = kind.number.value();
  return cell;
}

void BlockLedger::RemoveKind(uint32_t cell) {
  kinds_[cell].number = 0;
  StoresBefore();
  free_cells_.push_back(cell);
}

std::optional<BlockKind> BlockLedger::KindIn(uint32_t cell) const {
  const KindFacts& facts = kinds_[cell];
  if (facts.number == 0 || facts.check != CheckOf(facts, facts.number)) {
    return std::nullopt;
  }
  return BlockKind{.number = KindNumber(facts.number),
                   .generation = facts.generation,
                   .spec = {.ns = {.extra_key = OptionalOf(facts.extra_key),
                                   .cache_salt = OptionalOf(facts.cache_salt),
                                   .bigram = facts.is_bigram != 0},
                            .identity = StringOf(facts.identity),
                            .label = StringOf(facts.label),
                            .key_bytes = facts.key_bytes,
                            .shard_bytes = facts.shard_bytes,
                            .shards = facts.shards}};
}

}  // namespace pando
