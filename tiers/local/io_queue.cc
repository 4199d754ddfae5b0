#include "tiers/local/io_queue.h"

#include "tiers/local/file_calls.h"

namespace pando {

absl::Status Move(const Transfer& transfer) {
  const auto& [file, offset, bytes] = transfer.part;
  return transfer.is_write ? WriteAll(file, transfer.memory, bytes, offset)
                           : ReadAll(file, transfer.memory, bytes, offset);
}

}  // namespace pando
