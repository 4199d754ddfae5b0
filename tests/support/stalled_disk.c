// Preloaded into a process: while the file that STALLED_DISK names exists,
// reads and writes of the files of a disk tier, and all calls for the files of a
// shared folder, do not return. The file says how many of them still do.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define PAUSE_MICROSECONDS 1000

static pthread_mutex_t flag_mutex = PTHREAD_MUTEX_INITIALIZER;

static int MayPass(const char* flag) {
  pthread_mutex_lock(&flag_mutex);
  int left = 1;
  FILE* file = fopen(flag, "r+");
  if (file != NULL) {
    if (fscanf(file, "%d", &left) != 1) left = 0;
    rewind(file);
    if (left > 0) fprintf(file, "%-9d", left - 1);
    fclose(file);
  }
  pthread_mutex_unlock(&flag_mutex);
  return left > 0;
}

static int IsOfTier(const char* path) {
  return strstr(path, "/segment-") != NULL ||
         strstr(path, "/tier/index") != NULL || strstr(path, "/shared/") != NULL;
}

static void StallPath(const char* path) {
  if (!IsOfTier(path)) return;
  while (!MayPass(getenv("STALLED_DISK"))) usleep(PAUSE_MICROSECONDS);
}

static void Stall(int file) {
  char link[64];
  char path[4096] = "";
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  if (readlink(link, path, sizeof(path) - 1) < 0) return;
  StallPath(path);
}

// All that goes through a ring is of the disk tier. What does not pass waits in
// the ring for the next call, and what the kernel has already is answered.
int io_uring_submit(struct io_uring* ring) {
  int (*next)(struct io_uring*);
  *(void**)&next = dlsym(RTLD_NEXT, "io_uring_submit");
  return MayPass(getenv("STALLED_DISK")) ? next(ring) : 0;
}

int io_uring_submit_and_wait(struct io_uring* ring, unsigned count) {
  int (*next)(struct io_uring*, unsigned);
  *(void**)&next = dlsym(RTLD_NEXT, "io_uring_submit_and_wait");
  while (io_uring_sq_ready(ring) > 0 && !MayPass(getenv("STALLED_DISK"))) {
    if (io_uring_cq_ready(ring) > 0) return 0;
    usleep(PAUSE_MICROSECONDS);
  }
  return next(ring, count);
}

ssize_t pread(int file, void* to, size_t bytes, off_t offset) {
  ssize_t (*next)(int, void*, size_t, off_t);
  *(void**)&next = dlsym(RTLD_NEXT, "pread");
  Stall(file);
  return next(file, to, bytes, offset);
}

ssize_t pwrite(int file, const void* from, size_t bytes, off_t offset) {
  ssize_t (*next)(int, const void*, size_t, off_t);
  *(void**)&next = dlsym(RTLD_NEXT, "pwrite");
  Stall(file);
  return next(file, from, bytes, offset);
}

int open(const char* path, int flags, ...) {
  int (*next)(const char*, int, ...);
  *(void**)&next = dlsym(RTLD_NEXT, "open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  StallPath(path);
  return next(path, flags, mode);
}

int access(const char* path, int how) {
  int (*next)(const char*, int);
  *(void**)&next = dlsym(RTLD_NEXT, "access");
  StallPath(path);
  return next(path, how);
}

int utimensat(int folder, const char* path, const struct timespec times[2],
              int flags) {
  int (*next)(int, const char*, const struct timespec[2], int);
  *(void**)&next = dlsym(RTLD_NEXT, "utimensat");
  StallPath(path);
  return next(folder, path, times, flags);
}

int rename(const char* from, const char* to) {
  int (*next)(const char*, const char*);
  *(void**)&next = dlsym(RTLD_NEXT, "rename");
  StallPath(from);
  return next(from, to);
}

// Where files are large, these are what is called.
ssize_t pread64(int file, void* to, size_t bytes, off_t offset) {
  return pread(file, to, bytes, offset);
}

ssize_t pwrite64(int file, const void* from, size_t bytes, off_t offset) {
  return pwrite(file, from, bytes, offset);
}
