#ifndef PANDO_CLIENTS_CPP_SRC_REFUSED_USER_H_
#define PANDO_CLIENTS_CPP_SRC_REFUSED_USER_H_

#include <string>

namespace pando {
inline namespace client {

// Returns a sentence that says why this process's user cannot use the Unix
// socket at `address`; empty if the user is not the cause. Connects to the
// socket once, which may take a tenth of a second, so use it only for an error
// that a person is about to see.
std::string WhyUserIsRefused(const std::string& address);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_REFUSED_USER_H_
