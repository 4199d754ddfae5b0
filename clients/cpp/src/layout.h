// The errors of AttachPool for a layout that is not the pool's.
#ifndef PANDO_CLIENTS_CPP_SRC_LAYOUT_H_
#define PANDO_CLIENTS_CPP_SRC_LAYOUT_H_

#include <string>
#include <string_view>

#include "pando/pool.h"

namespace pando {
inline namespace client {

// All fields that differ, and the pandod whose pool would fit, as in "heads=8,
// but the pool has heads=2; a pool that fits: pandod --heads 8 ..."; empty when
// all agree.
std::string LayoutDifference(const KvLayout& stated, std::string_view model,
                             const PoolDescription& pool);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_LAYOUT_H_
