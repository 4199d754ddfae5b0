#ifndef PANDO_SERVICE_CALLS_ERROR_MESSAGE_H_
#define PANDO_SERVICE_CALLS_ERROR_MESSAGE_H_

#include <string>

#include "absl/status/status.h"

namespace pando {

// Returns the message of an error for the caller. The core says what is wrong
// in its own words; this function adds the name of the request's field, or of
// the option that sets the limit. Examples: "after: a handle of 5 tokens; it
// must be a multiple of 4", "the session has 2 locks; the limit is 2
// (--max-locks-per-session)".
std::string MessageOf(const absl::Status& status);

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_ERROR_MESSAGE_H_
