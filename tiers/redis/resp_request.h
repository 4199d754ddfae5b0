#ifndef PANDO_TIERS_REDIS_RESP_REQUEST_H_
#define PANDO_TIERS_REDIS_RESP_REQUEST_H_

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pando {

// A command in the form in which RESP sends it. Not thread-safe.
class RespRequest {
 public:
  // Begins a command of `words` words. Add and AddValue must be called that
  // many times in all.
  explicit RespRequest(size_t words);
  // Makes a complete command of these words.
  RespRequest(std::initializer_list<std::string_view> words);

  void Add(std::string_view word);
  // Adds a word of any bytes. They are not copied, and must outlive this
  // object. May be called once.
  void AddValue(std::span<const std::byte> value);

  // Appends the parts of memory that are to be written. This object must
  // outlive `parts`.
  void AppendTo(std::vector<iovec>& parts) const;

 private:
  std::string text_;
  // The value that is sent after the first `value_offset_` bytes of the text.
  std::span<const std::byte> value_;
  size_t value_offset_ = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_RESP_REQUEST_H_
