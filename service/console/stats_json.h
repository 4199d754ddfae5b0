#ifndef PANDO_SERVICE_CONSOLE_STATS_JSON_H_
#define PANDO_SERVICE_CONSOLE_STATS_JSON_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "base/kv_layout.h"
#include "core/journal/stats.h"
#include "service/calls/method_metrics.h"

namespace pando {

// Returns the pages by state, and the counts since the start, all of one
// moment.
nlohmann::json CacheJson(const CacheStats& stats);

// Returns the layout; JSON null if `layout` is null. Opaque pages have no
// heads.
nlohmann::json LayoutJson(const kv::Layout* layout);

// Returns how the times of the calls are distributed, for each unary method
// that was called.
nlohmann::json RpcJson(const std::vector<MethodFigures>& methods);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_STATS_JSON_H_
