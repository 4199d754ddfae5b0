#include "os/logging/log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "os/logging/log_line.h"
#include "os/logging/log_throttle.h"

namespace pando {
namespace {

// How many lines may wait for the thread that writes them.
constexpr size_t kWaitingLines = 8192;
constexpr absl::Duration kStopTime = absl::Seconds(2);

struct LogState {
  std::shared_ptr<spdlog::logger> logger;
  // A logger that writes to the same stream without a queue.
  std::shared_ptr<spdlog::logger> direct;
  bool is_json = false;
  LogThrottle throttle;
};

// Returns the state of the log. It is set up before there are threads, and
// never destroyed.
LogState& State() {
  static LogState* const state = new LogState;
  return *state;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kCritical:
      return spdlog::level::critical;
  }
  return spdlog::level::critical;
}

absl::string_view NameOf(spdlog::level::level_enum level) {
  const auto name = spdlog::level::to_string_view(level);
  return {name.data(), name.size()};
}

bool IsSet(const LogField& field) {
  const auto* text = std::get_if<std::string>(&field.value);
  return text == nullptr || !text->empty();
}

void LogOfProtobuf(google::protobuf::LogLevel level, const char*, int,
                   const std::string& text) {
  Log(level >= google::protobuf::LOGLEVEL_FATAL ? LogLevel::kCritical
                                                : LogLevel::kInfo,
      "protobuf", {{"text", text}});
}

// Returns whether this is what GPR_ASSERT logs before it aborts.
bool IsAssertion(const gpr_log_func_args& args) {
  return absl::StartsWith(args.message, "assertion failed");
}

void LogOfGrpc(gpr_log_func_args* args) {
  const bool is_error = args->severity == GPR_LOG_SEVERITY_ERROR;
  const LogLevel level = IsAssertion(*args) ? LogLevel::kCritical
                         : is_error         ? LogLevel::kWarning
                                            : LogLevel::kDebug;
  Log(level, level == LogLevel::kCritical ? "grpc aborts" : "grpc",
      {{"text", args->message},
       {"at", absl::StrCat(args->file, ":", args->line)}});
}

// Returns whether a line can be written without waiting for a reader.
bool StderrIsWritable() {
  pollfd stream = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&stream, 1, 0) == 1;
}

void Write(LogLevel level, absl::string_view words, absl::Time now,
           const std::vector<LogField>& fields) {
  const LogState& state = State();
  const spdlog::level::level_enum severity = ToSpdlog(level);
  const LogEvent event = {now, NameOf(severity), words, fields};
  const bool is_direct = level == LogLevel::kCritical && StderrIsWritable();
  (is_direct ? state.direct : state.logger)
      ->log(severity, state.is_json ? JsonLine(event) : TextLine(event));
}

void WriteKeptOut(absl::Time now) {
  for (const LogThrottle::KeptOut& kept : State().throttle.TakeKeptOut(now)) {
    if (IsLogged(kept.level)) {
      Write(kept.level, kept.words, absl::Now(), {{"repeats", kept.count}});
    }
  }
}

}  // namespace

void StartLog(const std::string& level, const std::string& format) {
  LogState& state = State();
  state.is_json =
      format == "json" || (format == "auto" && isatty(STDERR_FILENO) == 0);
  const auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  spdlog::init_thread_pool(kWaitingLines, 1);
  state.logger = std::make_shared<spdlog::async_logger>(
      "pandod", sink, spdlog::thread_pool(),
      spdlog::async_overflow_policy::overrun_oldest);
  state.direct = std::make_shared<spdlog::logger>("pandod", sink);
  SetLogLevel(level);
  sink->set_pattern("%v");
  google::protobuf::SetLogHandler(LogOfProtobuf);
  gpr_set_log_function(LogOfGrpc);
}

void SetLogLevel(const std::string& level) {
  State().logger->set_level(spdlog::level::from_str(level));
}

void LogRepeats() { WriteKeptOut(absl::Now()); }

void StopLog(int exit_status) {
  WriteKeptOut(absl::InfiniteFuture());
  // The logger is not destroyed, because threads of gRPC may still log.
  State().logger->set_level(spdlog::level::off);
  absl::Notification is_written;
  std::thread writing([&] {
    spdlog::shutdown();
    is_written.Notify();
  });
  // If the reader of stderr has stopped, the write blocks.
  if (!is_written.WaitForNotificationWithTimeout(kStopTime)) {
    std::_Exit(exit_status);
  }
  writing.join();
}

bool IsLogged(LogLevel level) {
  const LogState& state = State();
  return state.logger != nullptr && state.logger->should_log(ToSpdlog(level));
}

void Log(LogLevel level, absl::string_view words,
         std::initializer_list<LogField> fields) {
  if (!IsLogged(level)) return;
  const absl::Time now = absl::Now();
  const std::optional<uint64_t> repeats =
      State().throttle.Admit(level, words, now);
  if (!repeats.has_value()) return;
  std::vector<LogField> all;
  std::copy_if(fields.begin(), fields.end(), std::back_inserter(all), IsSet);
  if (*repeats > 0) all.emplace_back("repeats", *repeats);
  Write(level, words, now, all);
}

}  // namespace pando
