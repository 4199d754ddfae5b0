#include "gpu/page_memory.h"

namespace pando {

PageMemory PageBuffer(const KvLayout& layout, std::byte* base) {
  KvLayout buffer = layout;
  buffer.order = LayoutOrder::kPageFirst;
  buffer.kv_stride = layout.piece_bytes;
  buffer.layer_stride = layout.kv_planes * buffer.kv_stride;
  buffer.page_stride = layout.layers * buffer.layer_stride;
  return {.layout = buffer, .base = base};
}

}  // namespace pando
