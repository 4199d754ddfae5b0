#include "core/blocks/block_ledger.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "core/blocks/block_record.h"

namespace pando {
namespace {

// A kind whose facts are damaged is not taken over.
uint32_t CheckOf(const KindFacts& facts, uint32_t number) {
  return CheckOfBytes(std::as_bytes(std::span(&facts, 1))
                          .subspan(offsetof(KindFacts, generation)),
                      number);
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
      kLedgerPage + RoundUpToLedgerPage(kMaxKinds * sizeof(KindFacts));
  layout.records_at =
      layout.extents_at + RoundUpToLedgerPage(extents * sizeof(ExtentFacts));
  layout.records_bytes =
      RoundUpToLedgerPage(slots * (sizeof(BlockRecord) + kMaxKeyBytes));
  layout.bytes = layout.records_at + extents * layout.records_bytes;
  return layout;
}

}  // namespace

uint64_t BlockLedger::BytesFor(const BlockOptions& options) {
  return LayoutOf(options).bytes;
}

bool BlockLedger::IsOf(const BlockOptions& options) {
  if (options.ledger.size() != BytesFor(options)) return false;
  const auto& header =
      *reinterpret_cast<const BlockLedgerHeader*>(options.ledger.data());
  return header.start.magic == kBlockLedgerMagic &&
         header.memory_bytes == options.memory_bytes &&
         header.extent_bytes == options.extent_bytes &&
         header.memory_id == options.memory_id;
}

void BlockLedger::Complete(std::span<std::byte> ledger) {
  StoresBefore();
  StartOf(ledger).magic = kBlockLedgerMagic;
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
  header_ = reinterpret_cast<BlockLedgerHeader*>(memory);
  kinds_ = reinterpret_cast<KindFacts*>(memory + kLedgerPage);
  extents_ = reinterpret_cast<ExtentFacts*>(memory + layout.extents_at);
  records_ = memory + layout.records_at;
  records_bytes_ = layout.records_bytes;
  if (header_->start.magic == kBlockLedgerMagic) {
    CHECK(IsOf(options));
    is_of_before_ = true;
    ++header_->start.recoveries;
    header_->kind_cells = std::min(header_->kind_cells, kMaxKinds);
  } else {
    header_->memory_bytes = options.memory_bytes;
    header_->extent_bytes = options.extent_bytes;
    header_->memory_id = options.memory_id;
  }
  ++header_->start.starts;
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
  facts.extra_key = LedgerText::Of(kind.spec.ns.extra_key);
  facts.cache_salt = LedgerText::Of(kind.spec.ns.cache_salt);
  facts.identity = LedgerText::Of(kind.spec.identity);
  facts.label = LedgerText::Of(kind.spec.label);
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
                   .spec = {.ns = {.extra_key = facts.extra_key.optional(),
                                   .cache_salt = facts.cache_salt.optional(),
                                   .bigram = facts.is_bigram != 0},
                            .identity = facts.identity.text(),
                            .label = facts.label.text(),
                            .key_bytes = facts.key_bytes,
                            .shard_bytes = facts.shard_bytes,
                            .shards = facts.shards}};
}

}  // namespace pando
