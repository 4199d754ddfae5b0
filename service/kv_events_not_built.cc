#include "service/start_kv_events.h"

namespace pando {

absl::StatusOr<std::unique_ptr<KvEvents>> StartKvEvents(const Options&) {
  return absl::UnimplementedError(
      "kv-events is given, but this pandod was built without ZeroMQ and "
      "MessagePack");
}

}  // namespace pando
