#ifndef PANDO_TIERS_SHARED_DELETED_FOLDER_H_
#define PANDO_TIERS_SHARED_DELETED_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// Deletes up to `most` files of a folder and of those in it, and tells the
// bytes of each. Returns whether the folder is gone; an error, when all that is
// left cannot be deleted. Follows no link, so that another user who may write
// there cannot lead this out of the folder.
absl::StatusOr<bool> DeleteSome(const std::string& folder, size_t most,
                                const std::function<void(uint64_t)>& deleted);

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_DELETED_FOLDER_H_
