#ifndef PANDO_TIERS_REDIS_RESP_REQUEST_H_
#define PANDO_TIERS_REDIS_RESP_REQUEST_H_

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pando {

// A command of RESP as it is sent. Not thread-safe.
class RespRequest {
 public:
  // Words follow, as many as this says.
  explicit RespRequest(size_t words);
  // A command of words alone.
  RespRequest(std::initializer_list<std::string_view> words);

  void Add(std::string_view word);
  // One for a command, of any bytes, which are not copied.
  void AddValue(std::span<const std::byte> value);

  // Appends what is to be written; this must outlive it.
  void AppendTo(std::vector<iovec>& parts) const;

 private:
  std::string text_;
  // Stands in the text before `value_offset_`.
  std::span<const std::byte> value_;
  size_t value_offset_ = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_RESP_REQUEST_H_
