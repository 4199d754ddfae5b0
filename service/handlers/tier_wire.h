#ifndef PANDO_SERVICE_HANDLERS_TIER_WIRE_H_
#define PANDO_SERVICE_HANDLERS_TIER_WIRE_H_

#include "pando/v1/admin.pb.h"
#include "tiers/tiers.h"

namespace pando {

// Fills in the tiers of this pandod, and the pando-movers that copy pages for
// them.
void FillTiers(const Tiers& tiers, v1::GetStatsResponse* out);

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_TIER_WIRE_H_
