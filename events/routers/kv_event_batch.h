#ifndef PANDO_EVENTS_ROUTERS_KV_EVENT_BATCH_H_
#define PANDO_EVENTS_ROUTERS_KV_EVENT_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <msgpack/pack.hpp>
#include <msgpack/sbuffer.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/ids.h"

namespace pando {

// The encoding of an event: vLLM 0.33 and SGLang 0.5.23 write maps, older
// engines write arrays. docs/fleet.md says which router reads which.
enum class KvEventForm { kMap, kArray };

// Where a block is, in the engines' words. kGpu is the memory that attention
// reads, where a block costs no load; so it stands for the pool, also for one
// in host memory.
enum class KvMedium { kGpu, kCpu, kStorage };

// Names a block to routers: the first 8 bytes of its hash, big-endian.
using BlockId = uint64_t;

// Blocks that were cached, one after the other in one prompt.
struct StoredBlocks {
  KvMedium medium = KvMedium::kGpu;
  std::span<const BlockId> ids;
  // The block before the first one, or none if they begin a prompt.
  std::optional<BlockId> parent = {};
  // block_tokens for each block; one more at the end if are_pairs.
  std::span<const Token> tokens;
  uint32_t block_tokens = 0;
  // The tokens are compared in pairs (a bigram namespace).
  bool are_pairs = false;
  std::optional<std::string_view> lora_name = {};
  // Written only in the map form.
  std::optional<std::string_view> cache_salt = {};
};

// Builds the payload of one frame, as vLLM and SGLang publish it: a MessagePack
// array of a time, the events, and a data-parallel rank. The engines' own types
// (vllm/distributed/kv_events.py, sglang/srt/disaggregation/kv_events.py)
// define the fields. Fields that are optional there are always written, because
// some routers refuse an event without them. Not thread-safe.
class KvEventBatch {
 public:
  explicit KvEventBatch(KvEventForm form) : form_(form) {}

  void AddStored(const StoredBlocks& blocks);
  void AddRemoved(KvMedium medium, std::span<const BlockId> ids);
  void AddCleared();

  bool is_empty() const { return count_ == 0; }
  // The size of the events so far.
  size_t bytes() const { return events_.size(); }

  // Returns the payload with all events so far, and begins a new one.
  std::string Take(absl::Time now);

 private:
  // Begins an event of this type with `fields` fields.
  void BeginEvent(std::string_view type, uint32_t fields);
  // Writes the name of the next field, in the form that has names.
  void Name(std::string_view name);
  void PackText(std::string_view text);
  void PackText(const std::optional<std::string_view>& text);
  void PackIds(std::span<const BlockId> ids);
  void PackTokens(const StoredBlocks& blocks);

  const KvEventForm form_;
  msgpack::sbuffer events_;
  msgpack::packer<msgpack::sbuffer> packer_{events_};
  uint32_t count_ = 0;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_KV_EVENT_BATCH_H_
