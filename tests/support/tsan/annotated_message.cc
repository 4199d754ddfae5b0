// Tells the sanitizer how the messages of ZeroMQ order what threads do (see
// CMakeLists.txt). All that happened before memory was given to a message
// happened before ZeroMQ gives the memory back, on a thread of its own.

#include <sanitizer/tsan_interface.h>

#include <cstddef>

extern "C" {

using GiveBack = void (*)(void* data, void* hint);

int __real_zmq_msg_init_data(void* message, void* data, size_t bytes,
                             GiveBack give_back, void* hint);

}  // extern "C"

namespace {

struct Owner {
  GiveBack give_back;
  void* hint;
};

void GiveBackInOrder(void* data, void* hint) {
  __tsan_acquire(data);
  const Owner owner = *static_cast<Owner*>(hint);
  delete static_cast<Owner*>(hint);
  owner.give_back(data, owner.hint);
}

}  // namespace

extern "C" int __wrap_zmq_msg_init_data(void* message, void* data, size_t bytes,
                                        GiveBack give_back, void* hint) {
  if (give_back == nullptr) {
    return __real_zmq_msg_init_data(message, data, bytes, nullptr, hint);
  }
  auto* const owner = new Owner{give_back, hint};
  __tsan_release(data);
  return __real_zmq_msg_init_data(message, data, bytes, GiveBackInOrder, owner);
}
