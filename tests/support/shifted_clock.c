// Preloaded into a process: its wall clock is the system's plus the nanoseconds
// in the file that SHIFTED_CLOCK names, which may change at any time.
// Time that only goes forward is not touched. Waits until a time of day, as
// futexes know them, end when the shifted clock gets there, also if it jumps
// while they wait; the kernel does the same with its own clock.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#define SECOND 1000000000LL
// A wait looks this often whether the clock has jumped.
#define SLICE (SECOND / 50)

static const volatile int64_t* offset_file;

__attribute__((constructor)) static void Open(void) {
  const int fd = open(getenv("SHIFTED_CLOCK"), O_RDONLY);
  offset_file = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (offset_file == MAP_FAILED) abort();
}

static int64_t Offset(void) { return offset_file == NULL ? 0 : *offset_file; }

static int64_t Nanoseconds(struct timespec t) {
  return t.tv_sec * SECOND + t.tv_nsec;
}

static struct timespec Timespec(int64_t nanoseconds) {
  const struct timespec t = {nanoseconds / SECOND, nanoseconds % SECOND};
  return t;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*next)(clockid_t, struct timespec*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = next(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) {
    *now = Timespec(Nanoseconds(*now) + Offset());
  }
  return result;
}

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds(now);
}

int gettimeofday(struct timeval* now, void* zone) {
  (void)zone;
  const int64_t nanoseconds = Now();
  now->tv_sec = nanoseconds / SECOND;
  now->tv_usec = nanoseconds % SECOND / 1000;
  return 0;
}

time_t time(time_t* now) {
  const time_t seconds = Now() / SECOND;
  if (now != NULL) *now = seconds;
  return seconds;
}

long syscall(long number, ...) {
  static long (*next)(long, ...);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "syscall");
  va_list arguments;
  long a[6];
  va_start(arguments, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(arguments, long);
  va_end(arguments);
  const int is_timed_wait = number == SYS_futex &&
                            (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET &&
                            (a[1] & FUTEX_CLOCK_REALTIME) && a[3] != 0;
  if (!is_timed_wait) return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const int64_t deadline = Nanoseconds(*(const struct timespec*)a[3]);
  for (;;) {
    const int64_t now = Now();
    const int64_t end = deadline < now + SLICE ? deadline : now + SLICE;
    const struct timespec until = Timespec(end - Offset());
    const long result =
        next(number, a[0], a[1], a[2], (long)&until, a[4], a[5]);
    if (result != -1 || errno != ETIMEDOUT || Now() >= deadline) return result;
  }
}
