#ifndef PANDO_TOOLS_PANDOCTL_HELP_H_
#define PANDO_TOOLS_PANDOCTL_HELP_H_

#include <CLI/CLI.hpp>
#include <string>

namespace pando::ctl {

// Formats --help: each option with its placeholder and its default; then, for a
// verb, its examples (CLI11's footer) and the options that every verb has.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  // The options of a group continue those above.
  std::string make_expanded(const CLI::App* group) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_HELP_H_
