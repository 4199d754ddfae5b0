#ifndef PANDO_KEEPER_NOTIFY_SOCKET_H_
#define PANDO_KEEPER_NOTIFY_SOCKET_H_

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "keeper/descriptor_store.h"

namespace pando::keeper {

// The socket that pandod sends its messages to. It has a name that is no file,
// which any process of the machine can send to: only messages of pandod count,
// as the kernel says who sent them.
class NotifySocket {
 public:
  // Not valid(): errno says why.
  NotifySocket();

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  // For the variable NOTIFY_SOCKET.
  const std::string& address() const { return address_; }

  // Carries out the messages of this process that have come, without waiting.
  // Those that are not for the store go on to the service manager that started
  // the keeper, if there is one.
  void Receive(pid_t from, DescriptorStore& store);
  // Tells that service manager; has no effect where there is none.
  void TellServiceManager(std::string_view message) const;

 private:
  UniqueFd fd_;
  std::string address_;
  std::string service_manager_;  // its address; empty: there is none
};

}  // namespace pando::keeper

#endif  // PANDO_KEEPER_NOTIFY_SOCKET_H_
