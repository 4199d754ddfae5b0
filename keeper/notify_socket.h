#ifndef PANDO_KEEPER_NOTIFY_SOCKET_H_
#define PANDO_KEEPER_NOTIFY_SOCKET_H_

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "keeper/descriptor_store.h"
#include "keeper/life_signs.h"

namespace pando::keeper {

// The socket to which pandod sends its messages. Its address is an abstract
// name, not a file, so any process of the machine can send to it. Only messages
// of pandod count: the kernel says who sent them.
class NotifySocket {
 public:
  // Makes and binds the socket. If it is not valid() then, errno says why.
  NotifySocket();

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  // Returns the address, as the variable NOTIFY_SOCKET writes it.
  const std::string& address() const { return address_; }

  // Carries out the messages that have come from the process `from`, without
  // waiting, and drops those of others. Messages that are not for the store go
  // on to the service manager that started the keeper, if there is one.
  void Receive(pid_t from, DescriptorStore& store, LifeSigns& life);
  // Sends a message to that service manager; has no effect if there is none.
  void TellServiceManager(std::string_view message) const;

 private:
  UniqueFd fd_;
  std::string address_;
  std::string service_manager_;  // its address; empty: there is none
};

}  // namespace pando::keeper

#endif  // PANDO_KEEPER_NOTIFY_SOCKET_H_
