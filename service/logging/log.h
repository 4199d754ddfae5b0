#ifndef PANDO_SERVICE_LOGGING_LOG_H_
#define PANDO_SERVICE_LOGGING_LOG_H_

#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"
#include "service/logging/log_field.h"

namespace pando {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kCritical };

// The process's log, on stderr. `level` and `format` are valid values of the
// options log-level and log-format: "text", "json", or "auto" for text on a
// terminal and JSON elsewhere. What protobuf and gRPC have to say goes there,
// too. Lines are written by a thread of the log's own; when stderr is slow the
// oldest of those that wait are lost, as are all when the process is aborted.
void StartLog(const std::string& level, const std::string& format);
// Writes what waits to be written. Ends the process by SIGALRM when that cannot
// be done for five seconds.
void StopLog();

// Whether events of this level are logged.
bool IsLogged(LogLevel level);

// Logs an event. `words` are a constant of the program; what varies is in the
// fields, which never hold tokens, salts or contents of pages. Of many with the
// same words few are written: the next one says in "repeats" how many were not.
// Empty texts are left out. Thread-safe; without effect unless the log was
// started.
void Log(LogLevel level, absl::string_view words,
         std::initializer_list<LogField> fields = {});

}  // namespace pando

#endif  // PANDO_SERVICE_LOGGING_LOG_H_
