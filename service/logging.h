#ifndef PANDO_SERVICE_LOGGING_H_
#define PANDO_SERVICE_LOGGING_H_

#include <string>

namespace pando {

// Sends the process's log to stderr. `level` and `format` are valid values of
// the options log-level and log-format: "text", or "json" for one object a
// line.
void SetUpLogging(const std::string& level, const std::string& format);

}  // namespace pando

#endif  // PANDO_SERVICE_LOGGING_H_
