// The errors of AttachPool for a layout that is not the pool's.
#ifndef PANDO_CLIENTS_CPP_SRC_LAYOUT_H_
#define PANDO_CLIENTS_CPP_SRC_LAYOUT_H_

#include <string>
#include <string_view>

#include "pando/pool.h"

namespace pando {
inline namespace client {

// Returns all fields that differ, and the options of a pandod whose pool would
// fit, as in "heads=8, but the pool has heads=2; a pool that fits: pandod
// --heads 8 ...". Returns an empty text if all agree.
std::string LayoutDifference(const KvLayout& stated, std::string_view model,
                             const PoolDescription& pool);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_LAYOUT_H_
