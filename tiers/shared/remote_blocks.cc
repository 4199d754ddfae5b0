#include "tiers/shared/remote_blocks.h"

#include <algorithm>

#include "os/logging/log.h"

namespace pando {
namespace {

constexpr size_t kMaxWindowBlocks = 32;

}  // namespace

size_t RemoteBlocks::BlocksOf(size_t window_bytes) const {
  return std::clamp<size_t>(window_bytes / values_.page_bytes(), 1,
                            kMaxWindowBlocks);
}

std::shared_ptr<BlockWindow> RemoteBlocks::NewWindow(size_t blocks) const {
  return std::make_shared<BlockWindow>(blocks * values_.value_bytes());
}

std::span<RemoteStore::Transfer> RemoteBlocks::Begin(BlockWindow& window,
                                                     size_t count) const {
  return window.Begin(count, values_.value_bytes());
}

std::vector<BlockKey> RemoteBlocks::UnknownOf(uint64_t ns_digest,
                                              std::span<const PageHash> prompt,
                                              size_t begin) const {
  std::vector<BlockKey> keys;
  for (const uint32_t page : known_.UnknownOf(prompt, begin)) {
    keys.push_back(
        {.ns_digest = ns_digest, .hash = prompt[page], .ordinal = page + 1});
  }
  return keys;
}

bool RemoteBlocks::Erase(const BlockKey& key) {
  known_.Remove({&key.hash, 1});
  const absl::Status erased = store_->Erase(key);
  if (erased.ok()) return true;
  Log(LogLevel::kError, "a shared page cannot be erased",
      {{"error", erased.message()}});
  return false;
}

}  // namespace pando
