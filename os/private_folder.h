#ifndef PANDO_OS_PRIVATE_FOLDER_H_
#define PANDO_OS_PRIVATE_FOLDER_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace pando {

// Checks the folder that `option` names: it must exist and belong to this user
// or to root, this process must be able to read and write it, and no other user
// may write to it. An error names the option and the folder.
absl::Status CheckPrivateFolder(std::string_view option,
                                const std::string& folder);

}  // namespace pando

#endif  // PANDO_OS_PRIVATE_FOLDER_H_
