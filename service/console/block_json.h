#ifndef PANDO_SERVICE_CONSOLE_BLOCK_JSON_H_
#define PANDO_SERVICE_CONSOLE_BLOCK_JSON_H_

#include <cstddef>
#include <nlohmann/json.hpp>

#include "core/requests/block_requests.h"

namespace pando {

// The block memory, and at most `limit` kinds: those with most bytes first. No
// keys, no identities, no salts.
nlohmann::json BlocksJson(const BlockStats& blocks, size_t limit);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_BLOCK_JSON_H_
