#include "events/routers/kv_event_batch.h"

namespace pando {
namespace {

// All workers share one pool, so that there is one rank.
constexpr int kDataParallelRank = 0;

// vLLM's words: some routers take SGLang's for the memory of a GPU.
std::string_view NameOf(KvMedium medium) {
  if (medium == KvMedium::kGpu) return "GPU";
  return medium == KvMedium::kCpu ? "CPU" : "STORAGE";
}

}  // namespace

void KvEventBatch::AddStored(const StoredBlocks& blocks) {
  BeginEvent("BlockStored", blocks.cache_salt.has_value() ? 8 : 7);
  Name("block_hashes");
  PackIds(blocks.ids);
  Name("parent_block_hash");
  if (blocks.parent.has_value()) {
    packer_.pack_fix_uint64(*blocks.parent);
  } else {
    packer_.pack_nil();
  }
  Name("token_ids");
  PackTokens(blocks);
  Name("block_size");
  packer_.pack_uint32(blocks.block_tokens);
  Name("lora_id");
  packer_.pack_nil();
  Name("medium");
  PackText(NameOf(blocks.medium));
  Name("lora_name");
  PackText(blocks.lora_name);
  if (!blocks.cache_salt.has_value()) return;
  Name("cache_salt");
  PackText(*blocks.cache_salt);
}

void KvEventBatch::AddRemoved(KvMedium medium, std::span<const BlockId> ids) {
  BeginEvent("BlockRemoved", 2);
  Name("block_hashes");
  PackIds(ids);
  Name("medium");
  PackText(NameOf(medium));
}

void KvEventBatch::AddCleared() { BeginEvent("AllBlocksCleared", 0); }

std::string KvEventBatch::Take(absl::Time now) {
  msgpack::sbuffer head;
  msgpack::packer<msgpack::sbuffer> packer(head);
  packer.pack_array(3);
  packer.pack_double(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  packer.pack_array(count_);
  packer_.pack_int(kDataParallelRank);
  std::string payload;
  payload.reserve(head.size() + events_.size());
  payload.append(head.data(), head.size());
  payload.append(events_.data(), events_.size());
  events_.clear();
  count_ = 0;
  return payload;
}

void KvEventBatch::BeginEvent(std::string_view type, uint32_t fields) {
  ++count_;
  if (form_ == KvEventForm::kMap) {
    packer_.pack_map(fields + 1);
  } else {
    packer_.pack_array(fields + 1);
  }
  Name("type");
  PackText(type);
}

void KvEventBatch::Name(std::string_view name) {
  if (form_ == KvEventForm::kMap) PackText(name);
}

void KvEventBatch::PackText(std::string_view text) {
  const auto bytes = static_cast<uint32_t>(text.size());
  packer_.pack_str(bytes);
  packer_.pack_str_body(text.data(), bytes);
}

void KvEventBatch::PackText(const std::optional<std::string_view>& text) {
  if (text.has_value()) {
    PackText(*text);
  } else {
    packer_.pack_nil();
  }
}

// Always in 9 bytes: llm-d reads no shorter integers here.
void KvEventBatch::PackIds(std::span<const BlockId> ids) {
  packer_.pack_array(static_cast<uint32_t>(ids.size()));
  for (const BlockId id : ids) packer_.pack_fix_uint64(id);
}

void KvEventBatch::PackTokens(const StoredBlocks& blocks) {
  const std::span<const Token> tokens = blocks.tokens;
  const size_t units = tokens.size() - (blocks.are_pairs ? 1 : 0);
  packer_.pack_array(static_cast<uint32_t>(units));
  for (size_t i = 0; i < units; ++i) {
    if (blocks.are_pairs) packer_.pack_array(2);
    packer_.pack_uint32(tokens[i]);
    if (blocks.are_pairs) packer_.pack_uint32(tokens[i + 1]);
  }
}

}  // namespace pando
