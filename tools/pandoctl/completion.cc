#include "tools/pandoctl/completion.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace pando::ctl {
namespace {

// zsh users source the script, or put it into a folder where zsh finds it as
// the function that it calls for the first completion.
constexpr const char* kZshHead =
    "#compdef pandoctl\n"
    "(( $+functions[compdef] )) || { autoload -U +X compinit && compinit; }\n"
    "autoload -U +X bashcompinit && bashcompinit\n";
constexpr const char* kZshTail =
    "[[ $funcstack[1] != _pandoctl ]] || _bash_complete -F _pandoctl\n";

// The words between @ are replaced.
constexpr const char* kScript = R"(_pandoctl() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local verb= word words=
  for word in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    case $word in
      @verbs@) verb=$word; break ;;
    esac
  done
  case $before in
@choices@    --tokens-file|--cache-salt-file)
      COMPREPLY=($(compgen -f -- "$current"))
      return ;;
  esac
  if [[ -z $words ]]; then
    case $verb in
@options@    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _pandoctl pandoctl
)";

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) {
      names.push_back("-" + name);
    }
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  for (const CLI::App* group : app.get_subcommands({})) {
    if (!group->get_name().empty()) continue;  // a verb
    const std::vector<std::string> more = OptionNames(*group);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

// One branch of the shell's `case`.
std::string Branch(const std::string& pattern,
                   const std::vector<std::string>& words) {
  return absl::StrCat("    ", pattern, ") words=\"", absl::StrJoin(words, " "),
                      "\" ;;\n");
}

}  // namespace

std::string CompletionScript(const CLI::App& app, const Choices& choices,
                             const std::string& shell) {
  const std::vector<std::string> everywhere = OptionNames(app);
  std::vector<std::string> verbs;
  std::string options;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs.push_back(verb->get_name());
    std::vector<std::string> names = OptionNames(*verb);
    for (const CLI::App* part : verb->get_subcommands({})) {
      if (part->get_name().empty()) continue;  // a group of options
      names.push_back(part->get_name());
      const std::vector<std::string> more = OptionNames(*part);
      names.insert(names.end(), more.begin(), more.end());
    }
    names.insert(names.end(), everywhere.begin(), everywhere.end());
    absl::StrAppend(&options, Branch(verb->get_name(), names));
  }
  std::vector<std::string> first = verbs;
  first.insert(first.end(), everywhere.begin(), everywhere.end());
  absl::StrAppend(&options, Branch("''", first));

  std::string after;
  for (const auto& [word, words] : choices) {
    absl::StrAppend(&after, Branch(word, words));
  }
  const std::string script =
      absl::StrReplaceAll(kScript, {{"@verbs@", absl::StrJoin(verbs, "|")},
                                    {"@choices@", after},
                                    {"@options@", options}});
  return shell == "zsh" ? absl::StrCat(kZshHead, script, kZshTail) : script;
}

}  // namespace pando::ctl
