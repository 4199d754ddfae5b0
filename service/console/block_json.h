#ifndef PANDO_SERVICE_CONSOLE_BLOCK_JSON_H_
#define PANDO_SERVICE_CONSOLE_BLOCK_JSON_H_

#include <cstddef>
#include <nlohmann/json.hpp>

#include "core/requests/block_requests.h"

namespace pando {

// Returns the figures of the block memory, and of at most `limit` kinds, those
// with the most bytes first. It contains no keys, identities or salts.
nlohmann::json BlocksJson(const BlockStats& blocks, size_t limit);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_BLOCK_JSON_H_
