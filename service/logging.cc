#include "service/logging.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/time.h"

namespace pando {
namespace {

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message,
              spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(message.level);
    const nlohmann::json line = {
        {"ts",
         absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ",
                          absl::FromChrono(message.time), absl::UTCTimeZone())},
        {"level", std::string(level.data(), level.size())},
        {"msg", std::string(message.payload.data(), message.payload.size())}};
    // Bytes that are not UTF-8 are replaced: a log line never throws.
    const std::string text =
        line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

void SetUpLogging(const std::string& level, const std::string& format) {
  auto logger = std::make_shared<spdlog::logger>(
      "pandod", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::level::from_str(level));
  if (format == "json") {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  }
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace pando
