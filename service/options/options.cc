#include "service/options/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <regex>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/unknown_name.h"
#include "service/options/model_config.h"
#include "service/options/option_checks.h"
#include "service/options/option_printing.h"
#include "service/options/option_table.h"
#include "service/options/option_words.h"
#include "service/options/yaml_config.h"

namespace pando {
namespace {

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
  // std::regex takes a stack frame for each character that it matches.
  constexpr size_t kMaxLinkName = 256;
  return variable.size() <= kMaxLinkName && std::regex_match(variable, form);
}

// Variables of pandoctl, of engines, of `make` and of tests, which may share a
// shell or a container with pandod.
constexpr std::string_view kVariablesOfOthers[] = {
    "PANDO_ADDRESS",
    "PANDO_ANY_ENGINE_VERSION",
    "PANDO_ANY_MODEL_CONFIGURATION",
    "PANDO_CACHE",
    "PANDO_LOAD_SECONDS",
    "PANDO_MINISGL",
    "PANDO_TEST_OPERATIONS",
    "PANDO_TEST_PROGRAMS",
    "PANDO_TEST_SEED",
    "PANDO_TOKEN",
    "PANDO_TRACES",
    "PANDO_WAIT_MS",
};

bool IsOfOthers(std::string_view variable) {
  return std::ranges::find(kVariablesOfOthers, variable) !=
         std::end(kVariablesOfOthers);
}

// Refuses a path that exists and is no regular file; to open a FIFO would block
// without end.
std::string RefuseUnlessRegularFile(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::file_status status =
      std::filesystem::status(path, unknown);
  if (!std::filesystem::exists(status) ||
      std::filesystem::is_regular_file(status)) {
    return "";
  }
  return absl::StrFormat("%s is not a regular file", path);
}

// Appends an argument. "--http=" gives an empty value, but CLI11 would take the
// next argument for its value.
void AppendArgument(const std::string& argument,
                    std::vector<std::string>& arguments) {
  if (absl::StartsWith(argument, "--") &&
      argument.find('=') == argument.size() - 1) {
    arguments.push_back(argument.substr(0, argument.size() - 1));
    arguments.push_back("");
  } else {
    arguments.push_back(argument);
  }
}

// Appends the variables of pandod as the flags they stand for, and returns how
// many there are.
absl::StatusOr<size_t> AppendEnvironment(const char* const* env,
                                         std::vector<std::string>& arguments) {
  size_t variables = 0;
  std::map<std::string, std::string> options = {
      {EnvironmentName("config"), "config"}};
  for (const std::string& name : OptionNames()) {
    options[EnvironmentName(name)] = name;
  }
  for (; *env != nullptr; ++env) {
    const std::string entry = *env;
    const std::string variable = entry.substr(0, entry.find('='));
    if (!absl::StartsWith(variable, kEnvironmentPrefix)) continue;
    if (const auto found = options.find(variable); found != options.end()) {
      AppendArgument("--" + found->second + entry.substr(variable.size()),
                     arguments);
      ++variables;
    } else if (!IsOfOthers(variable) && !IsServiceLink(variable)) {
      std::vector<std::string> known(std::begin(kVariablesOfOthers),
                                     std::end(kVariablesOfOthers));
      for (const auto& option : options) known.push_back(option.first);
      const std::string option =
          OptionFor(variable.substr(std::size(kEnvironmentPrefix) - 1));
      return absl::InvalidArgumentError(
          UnknownName("environment variable", variable, known,
                      option.empty() ? "" : EnvironmentName(option)));
    }
  }
  return variables;
}

// Parses the flags of pandod with CLI11. Each object is used once.
class Parser {
 public:
  // The first `variables` flags stand for variables of the environment.
  explicit Parser(size_t variables)
      : variables_(variables),
        app_("Pando: one KV cache under many LLM engines.", "pandod") {
    const Options defaults;
    for (const OptionSpec& spec : OptionTable()) {
      Add(app_.add_option("--" + spec.name, spec.help))
          ->type_name(spec.value_name)
          ->default_str(spec.get(defaults));
    }
    app_.config_formatter(std::make_shared<YamlConfig>(OptionNames(), &lists_));
    Add(app_.set_config("--config", "", "YAML file of options"))
        ->type_name("PATH")
        ->check(RefuseUnlessRegularFile);
    app_.add_flag("--check-config", check_config_,
                  "Check the options, print what they come to, and exit");
    app_.add_flag("--print-config", print_config_,
                  "Print the options in effect as YAML, and exit");
    app_.add_flag("--print-options", print_options_,
                  "Print all options and their meaning as JSON, and exit");
    app_.add_flag("--print-metrics", print_metrics_,
                  "Print all metrics and their meaning as JSON, and exit");
    app_.set_version_flag("--version", "pandod " PANDO_VERSION);
    app_.allow_extras();
    app_.footer(
        "--pool-pages is also the environment variable PANDO_POOL_PAGES and "
        "the YAML key\npool-pages, or pages in a map pool; so for every option "
        "with a value. Flags\noverride the environment, which overrides the "
        "file. The file alone has quotas and\n"
        "credentials.\n");
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
      return absl::InvalidArgumentError(
          absl::StrFormat("config file %s: %s", ConfigPath(), error.what()));
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(error.what());
    }
    RETURN_IF_ERROR(RefuseUnknownFlags());
    RETURN_IF_ERROR(Store(line.options));
    line.options.quotas = lists_.quotas;
    line.options.block_quotas = lists_.block_quotas;
    line.options.credentials = lists_.credentials;
    if (print_options_) line.print = OptionCatalogueJson();
    line.print_metrics = print_metrics_;
    return line;
  }

  // Returns the text that a flag prints instead of a start, or "" if no such
  // flag is given.
  std::string Printed(const Options& options) const {
    if (print_config_) {
      return ConfigFile(options,
                        [this](const auto& name) { return SourceOf(name); });
    }
    return check_config_ ? Summary(options) : "";
  }

  bool checks_config() const { return check_config_; }

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
    const std::string flag = extras.front().substr(0, extras.front().find('='));
    const std::string option = OptionFor(
        flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
    return absl::InvalidArgumentError(
        UnknownName("flag", flag, known, option.empty() ? "" : "--" + option));
  }

  absl::Status Store(Options& options) const {
    for (const OptionSpec& spec : OptionTable()) {
      const CLI::Option* option = app_.get_option("--" + spec.name);
      if (option->count() == 0) continue;
      RETURN_IF_ERROR(spec.set(option->results().back(), options));
    }
    return absl::OkStatus();
  }

  // Returns where the value of an option came from.
  std::string SourceOf(const std::string& name) const {
    if (name == YamlConfig::kQuotas) {
      return lists_.quotas.empty() ? "default" : ConfigPath();
    }
    if (name == YamlConfig::kBlockQuotas) return ConfigPath();
    if (name == YamlConfig::kCredentials) return ConfigPath();
    const CLI::Option* option = app_.get_option("--" + name);
    const std::vector<CLI::Option*>& order = app_.parse_order();
    for (size_t i = order.size(); i-- > 0;) {
      if (order[i] != option) continue;
      return i < variables_ ? EnvironmentName(name) : "--" + name;
    }
    if (option->count() > 0) return ConfigPath();
    return IsOfModel(name) && given("model-config") ? "--model-config"
                                                    : "default";
  }

  // Returns whether --model-config can say the value of the option.
  static bool IsOfModel(const std::string& name) {
    return name == "layers" || name == "heads" || name == "head-size" ||
           name == "dtype";
  }

  std::string ConfigPath() const {
    return app_.get_config_ptr()->results().back();
  }

  const size_t variables_;
  CLI::App app_;
  bool check_config_ = false;
  bool print_config_ = false;
  bool print_options_ = false;
  bool print_metrics_ = false;
  ConfigLists lists_;
};

// Refuses values that were given in two ways that exclude each other.
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
  if (parser.given("page-bytes")) {
    for (const char* name : {"kv-planes", "heads", "head-size", "dtype"}) {
      if (!parser.given(name)) continue;
      return absl::InvalidArgumentError(absl::StrFormat(
          "page-bytes and %s are both given; a page is described by its bytes "
          "or by its heads",
          name));
    }
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

// Returns whether an option is given that says what the pool is like, or that
// has a meaning only if there is a pool.
bool AsksForPool(const Parser& parser, const Options& options) {
  const auto is_given = [&](const auto& name) { return parser.given(name); };
  return std::ranges::any_of(PoolOptions(), is_given) || HasTiers(options) ||
         options.high_free_pages > 0 || options.verify_pages > 0 ||
         !options.kv_events.empty() || !options.quotas.empty();
}

// If no option asks for a pool, there is block memory instead, and the smallest
// pool stands for none.
void CompletePool(const Parser& parser, Options& options) {
  if (AsksForPool(parser, options)) return;
  options.chooses_memory = !parser.given("memory");
  options.has_pool = false;
  options.pool_pages = 2;
  options.layers = 1;
  options.heads = 1;
}

// Makes the pool open if its bytes are given, but no option says how large its
// pages are.
void CompleteOpenPool(const Parser& parser, Options& options) {
  const auto is_given = [&](const auto& name) { return parser.given(name); };
  constexpr const char* kSayLayout[] = {"layers", "heads",      "head-size",
                                        "dtype",  "page-bytes", "model-config"};
  if (!parser.given("pool-bytes") || std::ranges::any_of(kSayLayout, is_given))
    return;
  options.is_open = true;
  for (const char* name :
       {"page-tokens", "kv-planes", "layout-order", "page-format", "model"}) {
    if (parser.given(name)) options.stated.push_back(name);
  }
}

// Sets the options that the model's file says and the user does not.
absl::Status ReadModel(const Parser& parser, Options& options) {
  if (options.model_config.empty()) return absl::OkStatus();
  if (parser.given("page-bytes")) {
    return absl::InvalidArgumentError(
        "page-bytes and model-config are both given; a page is described by "
        "its bytes or by its heads");
  }
  ASSIGN_OR_RETURN(const ModelConfig model,
                   ReadModelConfig(options.model_config));
  if (!parser.given("layers")) options.layers = model.layers;
  if (!parser.given("head-size")) options.head_size = model.head_size;
  if (!parser.given("dtype")) options.dtype = model.dtype;
  if (parser.given("heads")) return absl::OkStatus();
  ASSIGN_OR_RETURN(options.heads,
                   HeadsOfShard(model.kv_heads, options.pool_shards));
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
          .order = options.layout_order,
          .opaque_bytes = options.page_bytes / options.layers,
          .page_format = options.page_format};
}

SessionLimits SessionLimitsOf(const Options& options) {
  return {.max_locks = options.max_locks_per_session,
          .max_reserved_pages = options.max_reserved_pages_per_session,
          .max_kept_bytes = options.max_kept_bytes_per_session,
          .max_block_locks = options.max_block_locks_per_session,
          .max_reserved_blocks = options.max_reserved_blocks_per_session};
}

BlockOptions BlockOptionsOf(const Options& options) {
  return {.memory_bytes = options.memory,
          .extent_bytes = options.block_extent,
          .write_limit = options.block_write_limit,
          .quotas = options.block_quotas};
}

absl::StatusOr<CommandLine> ParseOptions(int argc, const char* const* argv,
                                         const char* const* env) {
  // If an option has several values, the last one counts, so flags come after
  // the environment. CLI11 reads the file only for options that neither gives.
  std::vector<std::string> arguments;
  ASSIGN_OR_RETURN(const size_t variables, AppendEnvironment(env, arguments));
  for (int i = 1; i < argc; ++i) AppendArgument(argv[i], arguments);

  Parser parser(variables);
  absl::StatusOr<CommandLine> line = parser.Parse(std::move(arguments));
  if (!line.ok() || !line->print.empty() || line->print_metrics) return line;
  RETURN_IF_ERROR(CheckExclusions(parser, line->options));
  RETURN_IF_ERROR(ReadModel(parser, line->options));
  CompletePool(parser, line->options);
  CompleteOpenPool(parser, line->options);
  RETURN_IF_ERROR(CompleteOptions(line->options));
  line->print = parser.Printed(line->options);
  line->check_start = parser.checks_config();
  return line;
}

}  // namespace pando
