#include "clients/cpp/src/settlements.h"

#include <chrono>
#include <utility>

#include "clients/cpp/src/status.h"

namespace pando {
inline namespace client {
namespace {

// The pause before a call that again has no answer is repeated.
constexpr std::chrono::milliseconds kPause{500};

}  // namespace

void Settlements::Add(Attempt attempt) {
  const std::lock_guard lock(mutex_);
  if (is_ending_) return;
  attempts_.push_back(std::move(attempt));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_all();
}

void Settlements::End() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Settlements::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !attempts_.empty(); });
    if (is_ending_) return;
    const Attempt attempt = std::move(attempts_.front());
    attempts_.pop_front();
    lock.unlock();
    const bool is_settled = !MayHaveActed(attempt());
    lock.lock();
    if (is_settled) continue;
    attempts_.push_back(attempt);
    changed_.wait_for(lock, kPause, [this] { return is_ending_; });
  }
}

}  // namespace client
}  // namespace pando
