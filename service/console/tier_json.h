#ifndef PANDO_SERVICE_CONSOLE_TIER_JSON_H_
#define PANDO_SERVICE_CONSOLE_TIER_JSON_H_

#include <nlohmann/json.hpp>

#include "tiers/tiers.h"

namespace pando {

// The tiers that there are, the fastest first. Of what many machines share, it
// is not known how much it holds.
nlohmann::json TiersJson(const Tiers& tiers);
// The devices whose pages movers copy; empty where pandod copies itself.
nlohmann::json MoversJson(const Tiers& tiers);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_TIER_JSON_H_
