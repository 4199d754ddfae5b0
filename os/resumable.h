#ifndef PANDO_OS_RESUMABLE_H_
#define PANDO_OS_RESUMABLE_H_

namespace pando {

// A call that waits, as it looks to the object for which it waits. Used in the
// turn.
class Resumable {
 public:
  // Runs the handler again. REQUIRES: the call waits.
  virtual void Resume() = 0;

 protected:
  ~Resumable() = default;
};

}  // namespace pando

#endif  // PANDO_OS_RESUMABLE_H_
