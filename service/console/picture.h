#ifndef PANDO_SERVICE_CONSOLE_PICTURE_H_
#define PANDO_SERVICE_CONSOLE_PICTURE_H_

#include <cstdint>
#include <vector>

#include "service/console/forest.h"

namespace pando {

// A branch that is shown, and the totals of its children that are not.
struct ShownBranch {
  Forest::Index index;
  uint32_t merged_children = 0;  // how many children are not shown
  Totals merged = {};            // those children and everything below them
};

// Chooses the branches to show, so that the picture stays readable: from `root`
// on, the `limit` largest branches that have at least `min_pages` pages. The
// others are merged into their parents. Parents come before their children;
// branches of equal size keep the forest's order.
std::vector<ShownBranch> MakePicture(const Forest& forest, Forest::Index root,
                                     uint32_t limit, uint32_t min_pages);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_PICTURE_H_
