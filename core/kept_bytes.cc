#include "core/kept_bytes.h"

#include "core/prefix_cache.h"

namespace pando {

KeptBytes::~KeptBytes() {
  if (cache_ != nullptr) cache_->Release(session_, bytes_);
}

}  // namespace pando
