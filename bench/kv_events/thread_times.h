#ifndef PANDO_BENCH_KV_EVENTS_THREAD_TIMES_H_
#define PANDO_BENCH_KV_EVENTS_THREAD_TIMES_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace pando::bench {

// Seconds of processor time that the threads of `process` with these names
// (proc(5), comm) have used.
double ThreadSeconds(pid_t process, const std::vector<std::string>& names);

}  // namespace pando::bench

#endif  // PANDO_BENCH_KV_EVENTS_THREAD_TIMES_H_
