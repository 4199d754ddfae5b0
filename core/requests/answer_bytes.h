#ifndef PANDO_CORE_REQUESTS_ANSWER_BYTES_H_
#define PANDO_CORE_REQUESTS_ANSWER_BYTES_H_

#include <cstddef>
#include <optional>
#include <span>

#include "base/ids.h"
#include "core/requests/answers.h"

namespace pando {

// Answers as bytes, for a ledger that the next process reads.

struct KeptAnswer {
  RequestId id;
  Answer answer;
};

// The number of bytes of an answer, a multiple of 8.
size_t EncodedBytes(const Answer& answer);
// Writes the answer to the first EncodedBytes bytes of `out`, which are aligned
// to 8.
void Encode(RequestId id, const Answer& answer, std::span<std::byte> out);
// Reads the answer at the beginning of `bytes` and takes its bytes off. None if
// there is none.
std::optional<KeptAnswer> TakeAnswer(std::span<const std::byte>& bytes);

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_ANSWER_BYTES_H_
