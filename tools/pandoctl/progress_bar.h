#ifndef PANDO_TOOLS_PANDOCTL_PROGRESS_BAR_H_
#define PANDO_TOOLS_PANDOCTL_PROGRESS_BAR_H_

#include <cstdint>
#include <string>

namespace pando::ctl {

// Shows how far long work has come, from none of it on, in one line of stderr
// that is written over and is gone at the end. Shows nothing where stderr is no
// terminal.
class ProgressBar {
 public:
  // `total` things, "requests" for example.
  ProgressBar(uint64_t total, std::string things);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  void Show(uint64_t done) const;

 private:
  const uint64_t total_;
  const std::string things_;
};

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_PROGRESS_BAR_H_
