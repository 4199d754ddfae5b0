#ifndef PANDO_TOOLS_PANDOCTL_COMPLETION_H_
#define PANDO_TOOLS_PANDOCTL_COMPLETION_H_

#include <CLI/App.hpp>
#include <map>
#include <string>
#include <vector>

namespace pando::ctl {

// The words that may follow a word, which names an option or a verb.
using Choices = std::map<std::string, std::vector<std::string>>;

// A script that completes the verbs and options of `app` in a shell: bash, or
// zsh, which takes bash's by its bashcompinit.
std::string CompletionScript(const CLI::App& app, const Choices& choices,
                             const std::string& shell);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_COMPLETION_H_
