#ifndef PANDO_SERVICE_HTTP_SHOWN_TOKEN_H_
#define PANDO_SERVICE_HTTP_SHOWN_TOKEN_H_

#include <string>
#include <string_view>

namespace pando {

// Returns the token in the value of an Authorization header: the token of
// "Bearer", or the password of "Basic", which browsers ask their users for.
// Returns "" if there is none.
std::string ShownToken(std::string_view authorization);

}  // namespace pando

#endif  // PANDO_SERVICE_HTTP_SHOWN_TOKEN_H_
