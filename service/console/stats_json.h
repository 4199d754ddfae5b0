#ifndef PANDO_SERVICE_CONSOLE_STATS_JSON_H_
#define PANDO_SERVICE_CONSOLE_STATS_JSON_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "base/kv_layout.h"
#include "core/journal/stats.h"
#include "service/calls/method_metrics.h"

namespace pando {

// Pages by state, and the counts since the start, all of one moment.
nlohmann::json CacheJson(const CacheStats& stats);

// Null where the pool has none; no heads where its pages are opaque.
nlohmann::json LayoutJson(const kv::Layout* layout);

// For each unary method that was called: how its calls are distributed over
// time.
nlohmann::json RpcJson(const std::vector<MethodFigures>& methods);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_STATS_JSON_H_
