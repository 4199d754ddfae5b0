#include "tools/pandoctl/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"

namespace pando::ctl {
namespace {

constexpr uint64_t kWidth = 40;

}  // namespace

ProgressBar::ProgressBar(uint64_t total, std::string things)
    : total_(total), things_(std::move(things)) {
  Show(0);
}

ProgressBar::~ProgressBar() {
  if (isatty(STDERR_FILENO)) absl::FPrintF(stderr, "\r\x1b[K");
}

void ProgressBar::Show(uint64_t done) const {
  if (!isatty(STDERR_FILENO)) return;
  const uint64_t full =
      total_ == 0 ? kWidth : std::min(kWidth, kWidth * done / total_);
  absl::FPrintF(stderr, "\r\x1b[K[%s%s] %d of %d %s", std::string(full, '#'),
                std::string(kWidth - full, ' '), done, total_, things_);
}

}  // namespace pando::ctl
