#ifndef PANDO_OS_LOGGING_LOG_LINE_H_
#define PANDO_OS_LOGGING_LOG_LINE_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "os/logging/log_field.h"

namespace pando {

// One event of the log.
struct LogEvent {
  absl::Time time;
  absl::string_view level;
  absl::string_view words;
  std::span<const LogField> fields;
};

// Formats an event as one line, without the newline, whatever bytes the fields
// have in them. TextLine is for people: "TIME LEVEL WORDS name=value ...".
// JsonLine is a JSON object with ts, level, msg and the fields.
std::string TextLine(const LogEvent& event);
std::string JsonLine(const LogEvent& event);

}  // namespace pando

#endif  // PANDO_OS_LOGGING_LOG_LINE_H_
