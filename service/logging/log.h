#ifndef PANDO_SERVICE_LOGGING_LOG_H_
#define PANDO_SERVICE_LOGGING_LOG_H_

#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"
#include "service/logging/log_field.h"
#include "service/logging/log_level.h"

namespace pando {

// The process's log, on stderr. `level` and `format` are valid values of the
// options log-level and log-format: "text", "json", or "auto" for text on a
// terminal and JSON elsewhere. What protobuf and gRPC have to say goes there,
// too. Lines are written by a thread of the log's own; when stderr is slow the
// oldest of those that wait are lost. Critical ones, which would be lost when
// the process is aborted, are written by the caller while stderr takes them.
void StartLog(const std::string& level, const std::string& format);
// Changes the level. Thread-safe.
void SetLogLevel(const std::string& level);
// Says how many events were not written for their words were repeated, unless
// that has been said. To be called now and then. Thread-safe.
void LogRepeats();
// Writes what waits to be written. When that cannot be done within two seconds
// the process ends here, with `exit_status`.
void StopLog(int exit_status);

// Whether events of this level are logged.
bool IsLogged(LogLevel level);

// Logs an event. `words` are a constant of the program; what varies is in the
// fields, which never hold tokens, salts or contents of pages. Of many with the
// same words few are written: "repeats" says how many were not.
// Empty texts are left out. Thread-safe; without effect unless the log was
// started.
void Log(LogLevel level, absl::string_view words,
         std::initializer_list<LogField> fields = {});

}  // namespace pando

#endif  // PANDO_SERVICE_LOGGING_LOG_H_
