#ifndef PANDO_SERVICE_OPTIONS_OPTION_TABLE_H_
#define PANDO_SERVICE_OPTIONS_OPTION_TABLE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "service/options/options.h"

namespace pando {

// Returns the names of the options that say how large the pool is, and what its
// pages are like.
const std::vector<std::string>& PoolOptions();
// Returns whether an option says what pages are like, or which model's KV they
// have.
bool IsOfLayout(const std::string& option);

// One option: "pool-pages" is the flag --pool-pages, the environment variable
// PANDO_POOL_PAGES, and the YAML key pool-pages, or pages in a map pool.
struct OptionSpec {
  std::string name;
  // The placeholder of the value in the help.
  std::string value_name;
  std::string help;
  // Parses and checks the text, then stores its value.
  std::function<absl::Status(const std::string& text, Options& options)> set;
  std::function<std::string(const Options& options)> get;
  // Whether a reload may change the value in a running server.
  bool is_live = false;
};

const std::vector<OptionSpec>& OptionTable();

// The prefix of pandod's environment variables. EnvironmentName returns the
// variable of an option: PANDO_POOL_PAGES for "pool-pages".
inline constexpr char kEnvironmentPrefix[] = "PANDO_";
std::string EnvironmentName(const std::string& option);

// Returns whether an option has an effect, given the others. For example, only
// one of the options for the size of the pool has an effect; and a page is
// described either by page-bytes, or by heads, head-size and so on.
bool IsInEffect(const OptionSpec& spec, const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_TABLE_H_
