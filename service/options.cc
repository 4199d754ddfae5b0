#include "service/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "service/option_checks.h"
#include "service/option_table.h"
#include "service/unknown_name.h"
#include "service/yaml_config.h"

namespace pando {
namespace {

constexpr char kEnvPrefix[] = "PANDO_";

std::string EnvName(const std::string& option) {
  return kEnvPrefix +
         absl::AsciiStrToUpper(absl::StrReplaceAll(option, {{"-", "_"}}));
}

std::vector<std::string> OptionNames() {
  std::vector<std::string> names;
  for (const OptionSpec& spec : OptionTable()) names.push_back(spec.name);
  return names;
}

// Kubernetes describes each service of a namespace to every pod in variables
// of this form; a service may well be called "pando".
bool IsServiceLink(const std::string& variable) {
  static const std::regex form(
      "\\w+_(SERVICE_HOST|SERVICE_PORT(_\\w+)?|PORT(_\\d+_\\w+)?)");
  return std::regex_match(variable, form);
}

// CLI11 takes "--http=" for an option whose value follows.
void AppendArgument(const std::string& argument,
                    std::vector<std::string>& arguments) {
  if (absl::StartsWith(argument, "--") && absl::EndsWith(argument, "=")) {
    arguments.push_back(argument.substr(0, argument.size() - 1));
    arguments.push_back("");
  } else {
    arguments.push_back(argument);
  }
}

// The variables of pandod as the flags they stand for.
absl::Status AppendEnvironment(const char* const* env,
                               std::vector<std::string>& arguments) {
  std::map<std::string, std::string> options = {{EnvName("config"), "config"}};
  for (const std::string& name : OptionNames()) options[EnvName(name)] = name;
  for (; *env != nullptr; ++env) {
    const std::string entry = *env;
    const std::string variable = entry.substr(0, entry.find('='));
    if (!absl::StartsWith(variable, kEnvPrefix)) continue;
    if (const auto found = options.find(variable); found != options.end()) {
      AppendArgument("--" + found->second + entry.substr(variable.size()),
                     arguments);
    } else if (!IsServiceLink(variable)) {
      std::vector<std::string> known;
      for (const auto& option : options) known.push_back(option.first);
      return absl::InvalidArgumentError(
          UnknownName("environment variable", variable, known));
    }
  }
  return absl::OkStatus();
}

// The flags of pandod, in terms of CLI11. Used once.
class Parser {
 public:
  Parser() : app_("Pando: one KV cache under many LLM engines.", "pandod") {
    const Options defaults;
    for (const OptionSpec& spec : OptionTable()) {
      Add(app_.add_option("--" + spec.name, spec.help))
          ->type_name(spec.value_name)
          ->default_str(spec.get(defaults));
    }
    app_.config_formatter(
        std::make_shared<YamlConfig>(OptionNames(), &quotas_));
    Add(app_.set_config("--config", "", "YAML file of options"))
        ->type_name("PATH");
    app_.add_flag("--check-config", check_config_,
                  "Check the options, say what they mean, and end");
    app_.add_flag("--print-metrics", print_metrics_,
                  "Print what metrics there are, as JSON, and end");
    app_.set_version_flag("--version", "pandod " PANDO_VERSION);
    app_.allow_extras();
    app_.footer(
        "--pool-pages is also the environment variable PANDO_POOL_PAGES and "
        "the YAML key\npool-pages, or pages in a map pool; so for every option "
        "with a value. Flags\noverride the environment, which overrides the "
        "file. The file alone has quotas.\n");
  }

  absl::StatusOr<CommandLine> Parse(std::vector<std::string> arguments) {
    CommandLine line;
    try {
      // CLI11 wants the last argument first.
      std::reverse(arguments.begin(), arguments.end());
      app_.parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
      line.print = app_.help();
      return line;
    } catch (const CLI::CallForVersion& version) {
      line.print = std::string(version.what()) + "\n";
      return line;
    } catch (const CLI::ConfigError& error) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "config file %s: %s", app_.get_config_ptr()->results().back(),
          error.what()));
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(error.what());
    }
    absl::Status status = RefuseUnknownFlags();
    if (status.ok()) status = Store(line.options);
    if (!status.ok()) return status;
    line.options.quotas = quotas_;
    return line;
  }

  bool check_config() const { return check_config_; }
  bool print_metrics() const { return print_metrics_; }
  bool given(const std::string& name) const {
    return app_.get_option("--" + name)->count() > 0;
  }

 private:
  static CLI::Option* Add(CLI::Option* option) { return option->take_last(); }

  absl::Status RefuseUnknownFlags() const {
    const std::vector<std::string> extras = app_.remaining();
    if (extras.empty()) return absl::OkStatus();
    if (!absl::StartsWith(extras.front(), "-")) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "unexpected argument '%s'; see --help", extras.front()));
    }
    std::vector<std::string> known;
    for (const CLI::Option* option : app_.get_options()) {
      known.push_back(option->get_name());
    }
    return absl::InvalidArgumentError(UnknownName(
        "flag", extras.front().substr(0, extras.front().find('=')), known));
  }

  absl::Status Store(Options& options) const {
    for (const OptionSpec& spec : OptionTable()) {
      const CLI::Option* option = app_.get_option("--" + spec.name);
      if (option->count() == 0) continue;
      absl::Status status = spec.set(option->results().back(), options);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  CLI::App app_;
  bool check_config_ = false;
  bool print_metrics_ = false;
  std::vector<QuotaClass> quotas_;
};

std::string PoolSummary(const Options& options) {
  const KvLayout layout =
      MakeKvLayout(ShapeOf(options), options.pool_pages).value();
  const std::string pages =
      absl::StrFormat("pages of %u tokens and %u bytes", options.page_tokens,
                      PageBytes(layout));
  const std::string shards =
      options.pool_memory == "host"
          ? absl::StrFormat("on each of %u shard(s)", options.pool_shards)
          : absl::StrCat("on each of the GPUs ",
                         absl::StrJoin(options.pool_devices, ", "));
  if (options.pool_fraction > 0) {
    return absl::StrFormat("%s, in %g of the free memory %s", pages,
                           options.pool_fraction, shards);
  }
  const uint64_t bytes = PoolBytes(layout, options.pool_pages);
  return absl::StrFormat("%u %s, %u bytes (%.1f GiB) %s", options.pool_pages,
                         pages, bytes, static_cast<double>(bytes) / (1 << 30),
                         shards);
}

std::string Summary(const Options& options) {
  std::string summary = absl::StrFormat(
      "config ok: %s\neviction policy %s, ", PoolSummary(options),
      std::string(EvictionPolicyName(options.eviction_policy)));
  if (options.low_free_pages == 0) {
    absl::StrAppend(&summary, "no pages kept free\n");
  } else {
    absl::StrAppendFormat(&summary,
                          "with less than %u pages free until %u are\n",
                          options.low_free_pages, options.high_free_pages);
  }
  for (const QuotaClass& quota : options.quotas) {
    absl::StrAppendFormat(
        &summary, "quota class %s, extra_key %s: floor of %u pages, %s\n",
        quota.name, quota.pattern, quota.floor_pages,
        quota.cap_pages.has_value()
            ? absl::StrFormat("cap of %u pages", *quota.cap_pages)
            : "no cap");
  }
  return summary;
}

// What may be said in one way only.
absl::Status CheckExclusions(const Parser& parser, Options& options) {
  const char* size = nullptr;
  for (const char* name : {"pool-pages", "pool-bytes", "pool-fraction"}) {
    if (!parser.given(name)) continue;
    if (size != nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s and %s are both given; give one of them", size, name));
    }
    size = name;
  }
  if (options.pool_devices.empty()) return absl::OkStatus();
  const auto devices = static_cast<uint32_t>(options.pool_devices.size());
  if (parser.given("pool-shards") && options.pool_shards != devices) {
    return absl::InvalidArgumentError(
        absl::StrFormat("pool-devices names %u devices; pool-shards is %u",
                        devices, options.pool_shards));
  }
  options.pool_shards = devices;
  return absl::OkStatus();
}

}  // namespace

KvShape ShapeOf(const Options& options) {
  return {.layers = options.layers,
          .kv_planes = options.kv_planes,
          .heads = options.heads,
          .head_size = options.head_size,
          .dtype = options.dtype,
          .page_tokens = options.page_tokens,
          .order = options.layout_order};
}

absl::StatusOr<CommandLine> ParseOptions(int argc, const char* const* argv,
                                         const char* const* env) {
  // The last of several values counts, so flags come after the environment.
  // CLI11 reads the file only for options that neither gives.
  std::vector<std::string> arguments;
  absl::Status status = AppendEnvironment(env, arguments);
  if (!status.ok()) return status;
  for (int i = 1; i < argc; ++i) AppendArgument(argv[i], arguments);

  Parser parser;
  absl::StatusOr<CommandLine> line = parser.Parse(std::move(arguments));
  if (!line.ok() || !line->print.empty()) return line;
  line->print_metrics = parser.print_metrics();
  if (line->print_metrics) return line;
  status = CheckExclusions(parser, line->options);
  if (!status.ok()) return status;
  status = CompleteOptions(line->options);
  if (!status.ok()) return status;
  if (parser.check_config()) line->print = Summary(line->options);
  return line;
}

}  // namespace pando
