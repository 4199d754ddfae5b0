#ifndef PANDO_SERVICE_CONSOLE_PICTURE_H_
#define PANDO_SERVICE_CONSOLE_PICTURE_H_

#include <cstdint>
#include <vector>

#include "service/console/forest.h"

namespace pando {

// A branch as it is shown, and what is below it that is not.
struct ShownBranch {
  Forest::Index index;
  uint32_t merged_children = 0;  // that are not shown
  Totals merged = {};            // of those children and all below them
};

// What to show of a part of the forest, so that it can be read: from `root` on
// the `limit` largest branches of at least `min_pages` pages, the rest merged.
// Each comes after its parent; what is equal in size comes in the order of the
// forest.
std::vector<ShownBranch> MakePicture(const Forest& forest, Forest::Index root,
                                     uint32_t limit, uint32_t min_pages);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_PICTURE_H_
