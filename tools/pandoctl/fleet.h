#ifndef PANDO_TOOLS_PANDOCTL_FLEET_H_
#define PANDO_TOOLS_PANDOCTL_FLEET_H_

#include <future>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/pandoctl/options.h"
#include "tools/pandoctl/server.h"

namespace pando::ctl {

// One pandod of several; it is named by its address.
struct Machine {
  std::string name;
  std::unique_ptr<Server> server;
};

// Returns the machines that the options name, in this order. Fails when a file
// of the credentials cannot be read.
absl::StatusOr<std::vector<Machine>> FindMachines(const Options& options);

// Returns what `ask` says of each machine. All are asked at the same time, each
// by a thread of its own, so that one that does not answer holds up no other.
template <typename Ask>
auto AskAll(const std::vector<Machine>& machines, const Ask& ask) {
  using Answer = std::invoke_result_t<Ask, Server&>;
  std::vector<std::future<Answer>> running;
  for (const Machine& machine : machines) {
    running.push_back(
        std::async(std::launch::async, [&] { return ask(*machine.server); }));
  }
  std::vector<Answer> answers;
  for (std::future<Answer>& answer : running) answers.push_back(answer.get());
  return answers;
}

// Returns OK if all answers are OK; otherwise says how many are not, and the
// first reason.
template <typename Answer>
absl::Status AllAnswered(const std::vector<absl::StatusOr<Answer>>& answers) {
  absl::Status first;
  size_t failed = 0;
  for (const absl::StatusOr<Answer>& answer : answers) {
    if (answer.ok()) continue;
    if (failed++ == 0) first = answer.status();
  }
  if (failed <= 1) return first;
  return absl::Status(first.code(),
                      absl::StrCat(first.message(), "; and ", failed - 1,
                                   " more of ", answers.size(), " machines"));
}

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_FLEET_H_
