// Preloaded into a process: while the file that STALLED_DISK names exists,
// reads and writes of the files of a disk tier do not return. The file says how
// many of them still do.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void Stall(int file) {
  char link[64];
  char path[4096] = "";
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  if (readlink(link, path, sizeof(path) - 1) < 0) return;
  if (strstr(path, "/segment-") == NULL &&
      strstr(path, "/tier/index") == NULL) {
    return;
  }
  while (!MayPass(getenv("STALLED_DISK"))) usleep(PAUSE_MICROSECONDS);
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

// Where files are large, these are what is called.
ssize_t pread64(int file, void* to, size_t bytes, off_t offset) {
  return pread(file, to, bytes, offset);
}

ssize_t pwrite64(int file, const void* from, size_t bytes, off_t offset) {
  return pwrite(file, from, bytes, offset);
}
