#ifndef PANDO_KEEPER_CHILD_H_
#define PANDO_KEEPER_CHILD_H_

#include <sys/types.h>

#include <csignal>
#include <string>

#include "keeper/descriptor_store.h"

namespace pando::keeper {

// Starts a program in a process of its own, which is told of the descriptors as
// systemd does it, sd_listen_fds(3), and is killed when this process ends. It
// begins a process group, so that a terminal's signals reach it through this
// process alone. `signals` are those that it blocks. -1: errno says why; a
// program that cannot be executed ends with 127.
pid_t StartChild(char* const* command, const DescriptorStore& store,
                 const std::string& notify_socket, const sigset_t& signals);

}  // namespace pando::keeper

#endif  // PANDO_KEEPER_CHILD_H_
