#include "service/logging/log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/logging/log_line.h"
#include "service/logging/log_throttle.h"

namespace pando {
namespace {

// Lines that may wait for the thread that writes them.
constexpr size_t kWaitingLines = 8192;
constexpr unsigned kStopSeconds = 5;

struct LogState {
  std::shared_ptr<spdlog::logger> logger;
  bool is_json = false;
  LogThrottle throttle;
};

// Set up before there are threads, and never destroyed.
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
  Log(level >= google::protobuf::LOGLEVEL_FATAL ? LogLevel::kError
                                                : LogLevel::kInfo,
      "protobuf", {{"text", text}});
}

void LogOfGrpc(gpr_log_func_args* args) {
  const bool is_error = args->severity == GPR_LOG_SEVERITY_ERROR;
  Log(is_error ? LogLevel::kWarning : LogLevel::kDebug, "grpc",
      {{"text", args->message},
       {"at", absl::StrCat(args->file, ":", args->line)}});
}

}  // namespace

void StartLog(const std::string& level, const std::string& format) {
  LogState& state = State();
  state.is_json =
      format == "json" || (format == "auto" && isatty(STDERR_FILENO) == 0);
  spdlog::init_thread_pool(kWaitingLines, 1);
  state.logger = std::make_shared<spdlog::async_logger>(
      "pandod", std::make_shared<spdlog::sinks::stderr_sink_mt>(),
      spdlog::thread_pool(), spdlog::async_overflow_policy::overrun_oldest);
  state.logger->set_level(spdlog::level::from_str(level));
  state.logger->set_pattern("%v");
  google::protobuf::SetLogHandler(LogOfProtobuf);
  gpr_set_log_function(LogOfGrpc);
}

void StopLog() {
  // The logger stays: threads of gRPC may still have something to say.
  State().logger->set_level(spdlog::level::off);
  // Nobody may read stderr: then the process ends without the last lines.
  alarm(kStopSeconds);
  spdlog::shutdown();
  alarm(0);
}

bool IsLogged(LogLevel level) {
  const LogState& state = State();
  return state.logger != nullptr && state.logger->should_log(ToSpdlog(level));
}

void Log(LogLevel level, absl::string_view words,
         std::initializer_list<LogField> fields) {
  if (!IsLogged(level)) return;
  LogState& state = State();
  const spdlog::level::level_enum severity = ToSpdlog(level);
  const absl::Time now = absl::Now();
  const std::optional<uint64_t> repeats = state.throttle.Admit(words, now);
  if (!repeats.has_value()) return;
  std::vector<LogField> all;
  std::copy_if(fields.begin(), fields.end(), std::back_inserter(all), IsSet);
  if (*repeats > 0) all.emplace_back("repeats", *repeats);
  const LogEvent event = {now, NameOf(severity), words, all};
  state.logger->log(severity,
                    state.is_json ? JsonLine(event) : TextLine(event));
}

}  // namespace pando
