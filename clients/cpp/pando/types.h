// The words every other header of this library uses.
//
// The names of this library are used as pando::Client and so on. The inline
// namespace keeps them apart from those of the server, whose code has types of
// the same names and may be linked into the same program.
#ifndef PANDO_TYPES_H_
#define PANDO_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pando {
inline namespace client {

using Token = uint32_t;

// Index of a page in the pool. Page 0 is the padding page and is never handed
// out.
using PageId = uint32_t;

// A closed world of prefixes; nothing is shared between namespaces. An unset
// field differs from an empty one.
struct Namespace {
  std::optional<std::string> extra_key = {};
  std::optional<std::string> cache_salt = {};
  // Whether the cache compares pairs of neighbouring tokens (EAGLE) instead of
  // tokens: n tokens are n - 1 units, pages hold units, and lengths of prefixes
  // count units.
  bool bigram = false;
};

// Names the prefix at which a match or an insert ended. A later call may begin
// there (`after`) and send only the tokens after it. Plain data: any worker of
// this pandod may use it, in the same namespace. It protects nothing from
// eviction; once the end of the prefix is evicted, or pandod has ended, calls
// with the handle send all tokens.
struct PrefixHandle {
  // The epoch that it belongs to.
  uint64_t epoch = 0;
  uint64_t node = 0;
  // The length of the prefix in tokens, a multiple of page_tokens. Zero stands
  // for the start of the prompt, as if there were no handle.
  uint32_t tokens = 0;

  friend bool operator==(const PrefixHandle&, const PrefixHandle&) = default;
};

// Says how many pages of the pool no session holds.
struct PageRoom {
  uint32_t free = 0;
  uint32_t evictable = 0;

  friend bool operator==(const PageRoom&, const PageRoom&) = default;
};

// Pages that a session reserved. They are its own until they are inserted or
// freed, and void once the session is lost.
struct ReservedPages {
  uint64_t session_id = 0;
  std::vector<PageId> ids = {};
};

// Where copies of pages are kept outside the pool.
enum class Tier {
  kNone,
  kDisk,
  kHost,    // the memory of pandod
  kShared,  // a store that many machines share
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_TYPES_H_
