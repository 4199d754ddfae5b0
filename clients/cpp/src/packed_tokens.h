#ifndef PANDO_CLIENTS_CPP_SRC_PACKED_TOKENS_H_
#define PANDO_CLIENTS_CPP_SRC_PACKED_TOKENS_H_

#include <google/protobuf/io/coded_stream.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "pando/types.h"

namespace pando {
inline namespace client {

// The field with a request's tokens, kept apart from the rest of the message.
// So a long prompt is copied only once, to the memory from which it is sent.
// The field follows the others, which protobuf allows in any order.
class PackedTokens {
 public:
  PackedTokens() = default;
  // `field` is the number of a packed field of fixed32.
  PackedTokens(int field, std::span<const Token> tokens)
      : tag_(static_cast<uint32_t>(field) << 3 | kLengthDelimited),
        tokens_(tokens) {}

  std::span<const Token> tokens() const { return tokens_; }

  // The size of the serialized field; 0 if there are no tokens.
  size_t ByteSize() const {
    using google::protobuf::io::CodedOutputStream;
    if (tokens_.empty()) return 0;
    return CodedOutputStream::VarintSize32(tag_) +
           CodedOutputStream::VarintSize32(DataSize()) + DataSize();
  }
  // Writes the serialized field. REQUIRES: `out` has room for ByteSize() bytes.
  void Write(uint8_t* out) const {
    using google::protobuf::io::CodedOutputStream;
    if (tokens_.empty()) return;
    out = CodedOutputStream::WriteTagToArray(tag_, out);
    out = CodedOutputStream::WriteVarint32ToArray(DataSize(), out);
    std::memcpy(out, tokens_.data(), DataSize());
  }

 private:
  static constexpr uint32_t kLengthDelimited = 2;

  uint32_t DataSize() const {
    return static_cast<uint32_t>(tokens_.size_bytes());
  }

  uint32_t tag_ = 0;
  std::span<const Token> tokens_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_PACKED_TOKENS_H_
