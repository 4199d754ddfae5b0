#include "tools/pandoctl/help.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace pando::ctl {

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_positional()) return "";
  // CLI11 appends what it checks after a colon; that is cut off.
  const std::string type = option->get_type_name();
  const std::string placeholder = type.substr(0, type.find(':'));
  return placeholder.empty() ? "" : " " + placeholder;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (!option->get_default_str().empty()) {
    absl::StrAppend(&text, " [", option->get_default_str(), "]");
  }
  if (!option->get_envname().empty()) {
    absl::StrAppend(&text, " [or ", option->get_envname(), "]");
  }
  return text;
}

std::string HelpFormatter::make_expanded(const CLI::App* group) const {
  const std::string titled = make_groups(group, CLI::AppFormatMode::Sub);
  return std::string(absl::StripPrefix(titled, "\nOptions:\n"));
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::string text;
  if (!app->get_footer().empty()) {
    absl::StrAppend(&text, "Examples:\n", app->get_footer(), "\n\n");
  }
  if (app->get_parent() == nullptr) return text;
  const CLI::App* const help = app->get_parent();
  const std::vector<const CLI::Option*> common =
      help->get_options([help](const CLI::Option* option) {
        return option != help->get_help_ptr();
      });
  return absl::StrCat(
      text, absl::StripPrefix(
                make_group("Options of every verb", false, common), "\n"));
}

}  // namespace pando::ctl
