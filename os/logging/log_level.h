#ifndef PANDO_OS_LOGGING_LOG_LEVEL_H_
#define PANDO_OS_LOGGING_LOG_LEVEL_H_

namespace pando {

// kCritical: the process is about to end.
enum class LogLevel { kDebug, kInfo, kWarning, kError, kCritical };

}  // namespace pando

#endif  // PANDO_OS_LOGGING_LOG_LEVEL_H_
