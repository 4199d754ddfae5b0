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
};

// Pages that a session reserved. They are its own until they are inserted or
// freed, and void once the session is lost.
struct ReservedPages {
  uint64_t session_id = 0;
  std::vector<PageId> ids = {};
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_TYPES_H_
