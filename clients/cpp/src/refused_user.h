#ifndef PANDO_CLIENTS_CPP_SRC_REFUSED_USER_H_
#define PANDO_CLIENTS_CPP_SRC_REFUSED_USER_H_

#include <string>

namespace pando {
inline namespace client {

// Why this process's user cannot use the Unix socket at `address`: a sentence,
// or nothing where the user is not the cause. Connects to it once, and may take
// a tenth of a second: for an error that is about to be shown to a person.
std::string WhyUserIsRefused(const std::string& address);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_REFUSED_USER_H_
