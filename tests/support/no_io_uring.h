// This header is for both C and C++.
#ifndef PANDO_TESTS_SUPPORT_NO_IO_URING_H_
#define PANDO_TESTS_SUPPORT_NO_IO_URING_H_

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// Makes the kernel refuse a system call from now on, to this thread and to
// those that it starts.
static inline void ForbidCall(unsigned number) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof(steps) / sizeof(steps[0]), steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    abort();
  }
}

// Makes the kernel refuse to set up rings of io_uring, as in the sandboxes of
// container runtimes.
static inline void ForbidIoUring(void) { ForbidCall(SYS_io_uring_setup); }

#endif  // PANDO_TESTS_SUPPORT_NO_IO_URING_H_
