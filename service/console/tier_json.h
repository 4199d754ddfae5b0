#ifndef PANDO_SERVICE_CONSOLE_TIER_JSON_H_
#define PANDO_SERVICE_CONSOLE_TIER_JSON_H_

#include <nlohmann/json.hpp>

#include "tiers/tiers.h"

namespace pando {

// Returns the tiers of this pandod, the fastest first. pandod does not know how
// much a tier holds that machines share.
nlohmann::json TiersJson(const Tiers& tiers);
// Returns the devices whose pages pando-movers copy; the list is empty if
// pandod itself copies the pages.
nlohmann::json MoversJson(const Tiers& tiers);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_TIER_JSON_H_
