#ifndef PANDO_SERVICE_OPTIONS_OPTION_TABLE_H_
#define PANDO_SERVICE_OPTIONS_OPTION_TABLE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "service/options/options.h"

namespace pando {

// One option: "pool-pages" is the flag --pool-pages, the environment variable
// PANDO_POOL_PAGES, and the YAML key pool-pages, or pages in a map pool.
struct OptionSpec {
  std::string name;
  // Stands for the value in the help.
  std::string value_name;
  std::string help;
  // Parses and checks the text, then stores its value.
  std::function<absl::Status(const std::string& text, Options& options)> set;
  std::function<std::string(const Options& options)> get;
  // A running server takes another value when its options are read again.
  bool is_live = false;
};

const std::vector<OptionSpec>& OptionTable();

// What the variables of pandod begin with, and that of an option.
inline constexpr char kEnvironmentPrefix[] = "PANDO_";
std::string EnvironmentName(const std::string& option);

// Of the options that say how large the pool is, one has a say; what a page is
// is said by page-bytes or by the others.
bool IsInEffect(const OptionSpec& spec, const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_TABLE_H_
