#ifndef PANDO_OS_LOGGING_LOG_H_
#define PANDO_OS_LOGGING_LOG_H_

#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"
#include "os/logging/log_field.h"
#include "os/logging/log_level.h"

namespace pando {

// Starts the process's log, on stderr. `level` and `format` are valid values of
// the options log-level and log-format. The format is "text", "json", or "auto"
// for text on a terminal and JSON elsewhere. Messages of protobuf and gRPC go
// to the log, too.
//
// The log has a thread that writes the lines; when stderr is slow, the oldest
// waiting lines are lost. A critical line would be lost when the process is
// aborted, so the caller of Log writes it itself if stderr accepts it at once.
void StartLog(const std::string& level, const std::string& format);
// Changes the level to a valid value of the option log-level. Thread-safe.
void SetLogLevel(const std::string& level);
// Logs how many events were suppressed because their words were repeated (see
// Log), unless that was logged already. To be called periodically. Thread-safe.
void LogRepeats();
// Writes the waiting lines and stops the log. If that takes more than two
// seconds, ends the process with `exit_status`.
void StopLog(int exit_status);

// Returns whether events of this level are logged.
bool IsLogged(LogLevel level);

// Logs an event. `words` must be a constant of the program; everything that
// varies goes into the fields, which must never hold tokens, salts or contents
// of pages. Fields with empty texts are left out. When an event with the same
// words comes often, only some are written, and the field "repeats" tells how
// many were not. Thread-safe; has no effect unless the log was started.
void Log(LogLevel level, absl::string_view words,
         std::initializer_list<LogField> fields = {});

}  // namespace pando

#endif  // PANDO_OS_LOGGING_LOG_H_
