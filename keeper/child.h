#ifndef PANDO_KEEPER_CHILD_H_
#define PANDO_KEEPER_CHILD_H_

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <string>

#include "keeper/descriptor_store.h"

namespace pando::keeper {

// Starts a program in a process of its own. The program gets the descriptors of
// `store` as systemd passes them, sd_listen_fds(3), and `notify_socket` as its
// NOTIFY_SOCKET. It is asked for signs of life, sd_watchdog_enabled(3), at
// least every `watchdog`, unless that is 0; the service manager of this process
// may ask for more of them. It blocks `signals`. It is killed when this process
// ends. It begins a process group, so that a terminal's signals reach it only
// through this process.
//
// Returns the process id, or -1 if there is none; then errno says why. If the
// program cannot be executed, its process ends with status 127.
pid_t StartChild(char* const* command, const DescriptorStore& store,
                 const std::string& notify_socket,
                 std::chrono::microseconds watchdog, const sigset_t& signals);

}  // namespace pando::keeper

#endif  // PANDO_KEEPER_CHILD_H_
