#ifndef PANDO_SERVICE_CONSOLE_STATS_JSON_H_
#define PANDO_SERVICE_CONSOLE_STATS_JSON_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "core/stats.h"
#include "service/calls/method_metrics.h"

namespace pando {

// Pages by state, and what was counted since the start: consistent in itself.
nlohmann::json CacheJson(const CacheStats& stats);

// Of the unary methods that were called: the calls by their time.
nlohmann::json RpcJson(const std::vector<MethodFigures>& methods);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_STATS_JSON_H_
