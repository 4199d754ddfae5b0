#include "clients/python/native/waiting.h"

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <algorithm>

namespace pando::python {
namespace {

using Clock = lane::Lane::Clock;

// The time between two looks for signals, so that a call can be interrupted.
constexpr std::chrono::milliseconds kLongestWait{50};

Clock::time_point After(double seconds) {
  // Longer timeouts are cut to this one, so that the addition does not
  // overflow.
  constexpr double kYear = 365 * 24 * 3600;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            Seconds(std::clamp(seconds, 0.0, kYear)));
}

}  // namespace

// While an interpreter ends, Python before 3.14 unwinds any thread that asks
// for the GIL. That would end the whole process if a destructor were on the
// way, so such a thread stays here until the process ends.
void TakeGil(PyThreadState* thread) {
  try {
    PyEval_RestoreThread(thread);
  } catch (...) {
    while (true) pause();
  }
}

bool AwaitOutcome(lane::Call& call, double timeout) {
  // The outcome is often there already, so the first look needs neither the
  // clock nor a release of the GIL.
  if (call.Poll()) return true;
  const Clock::time_point deadline = After(timeout);
  while (true) {
    PyThreadState* const thread = PyEval_SaveThread();
    const lane::Call::Outcome outcome =
        call.Await(std::min(deadline, Clock::now() + kLongestWait));
    TakeGil(thread);
    if (outcome != lane::Call::Outcome::kTimedOut) return true;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    if (Clock::now() >= deadline) return false;
  }
}

}  // namespace pando::python
