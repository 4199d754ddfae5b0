#ifndef PANDO_TIERS_SHARED_DELETED_FOLDER_H_
#define PANDO_TIERS_SHARED_DELETED_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// Deletes up to `most` files in a folder and its subfolders, and calls
// `deleted` with the size of each in bytes. Returns whether the folder is gone,
// or an error if nothing that is left can be deleted. Follows no symbolic
// links, so that another user who may write there cannot lead it out of the
// folder.
absl::StatusOr<bool> DeleteSome(const std::string& folder, size_t most,
                                const std::function<void(uint64_t)>& deleted);

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_DELETED_FOLDER_H_
