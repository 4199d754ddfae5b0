#ifndef PANDO_CORE_REQUESTS_H_
#define PANDO_CORE_REQUESTS_H_

// What PrefixCache is asked and what it answers: plain structs, so that any
// transport can speak to it. The meaning of each field is the one of the field
// of the same name in proto/pando/v1/prefix_cache.proto.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/namespace_key.h"

namespace pando {

struct MatchRequest {
  SessionId session = {};
  const NamespaceKey& ns;
  std::span<const Token> tokens;
  std::optional<uint32_t> max_tokens = {};
  bool lock = false;
  uint32_t reserve_tokens = 0;
  bool touch = true;
};

struct MatchResult {
  uint32_t matched_tokens = 0;
  std::vector<PageId> pages;
  LockId lock;
  std::vector<PageId> reserved;
};

enum class LockAction { kKeep, kRelock, kUnlock };

struct InsertRequest {
  SessionId session;
  const NamespaceKey& ns;
  std::span<const Token> tokens;
  std::span<const PageId> pages;
  LockId anchor = {};
  LockAction lock_action = LockAction::kKeep;
  bool keep_duplicates = false;
  std::span<const PageId> free_pages = {};
  uint32_t prompt_tokens = 0;
};

struct InsertResult {
  uint32_t existing_tokens = 0;
  std::vector<PageId> canonical_pages;
  uint32_t freed_duplicates = 0;
};

struct LockResult {
  LockId lock;
  uint32_t locked_tokens = 0;
};

struct FlushResult {
  uint32_t evicted_pages = 0;
  uint32_t protected_pages = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_H_
