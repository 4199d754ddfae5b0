#ifndef PANDO_OS_LOGGING_LOG_LEVEL_H_
#define PANDO_OS_LOGGING_LOG_LEVEL_H_

namespace pando {

// How important an event of the log is. kCritical means that the process is
// about to end.
enum class LogLevel { kDebug, kInfo, kWarning, kError, kCritical };

}  // namespace pando

#endif  // PANDO_OS_LOGGING_LOG_LEVEL_H_
