#include "os/crash_count.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <mutex>

namespace pando {
namespace {

constexpr std::array<int, 6> kCrashes = {SIGABRT, SIGBUS,  SIGFPE,
                                         SIGILL,  SIGSEGV, SIGTRAP};

std::array<std::atomic<uint32_t*>, kMaxCrashCounts> counts;
// The actions that these signals had before.
std::array<struct sigaction, kCrashes.size()> before;

void Crash(int signal, siginfo_t* info, void* /*context*/) {
  for (std::atomic<uint32_t*>& count : counts) {
    uint32_t* const counted = count.exchange(nullptr);
    if (counted != nullptr) ++*counted;
  }
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    if (kCrashes[i] == signal) sigaction(signal, &before[i], nullptr);
  }
  // A fault happens again when this function returns, and then ends the
  // process. A signal that was sent does not come again by itself.
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

void CountCrashesIn(std::span<uint32_t* const> counted) {
  for (size_t i = 0; i < kMaxCrashCounts; ++i) {
    counts[i] = i < counted.size() ? counted[i] : nullptr;
  }
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = Crash;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    for (size_t i = 0; i < kCrashes.size(); ++i) {
      sigaction(kCrashes[i], &action, &before[i]);
    }
  });
}

}  // namespace pando
