#include "base/fitting_pandod.h"

#include "absl/strings/str_cat.h"

namespace pando::kv {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string FittingPandod(const Shape& shape, std::string_view model,
                          const PoolSize& size) {
  std::string line = "pandod --pool-bytes ";
  if (size.shard_bytes > 0) {
    absl::StrAppend(&line, size.shard_bytes);
  } else {
    absl::StrAppend(&line, "SIZE");
  }
  if (size.is_on_gpu) absl::StrAppend(&line, " --pool-memory cuda");
  if (size.shards > 1) absl::StrAppend(&line, " --pool-shards ", size.shards);
  absl::StrAppend(&line, " --layers ", shape.layers);
  if (shape.is_opaque()) {
    absl::StrAppend(&line, " --page-bytes ", shape.layers * shape.opaque_bytes);
  } else {
    absl::StrAppend(&line, " --kv-planes ", shape.kv_planes, " --heads ",
                    shape.heads, " --head-size ", shape.head_size, " --dtype ",
                    std::string(DTypeName(shape.dtype)));
  }
  absl::StrAppend(&line, " --page-tokens ", shape.page_tokens);
  if (shape.order != LayoutOrder::kLayerFirst) {
    absl::StrAppend(&line, " --layout-order ",
                    std::string(LayoutOrderName(shape.order)));
  }
  if (!shape.page_format.empty()) {
    absl::StrAppend(&line, " --page-format ", Quoted(shape.page_format));
  }
  if (!model.empty()) absl::StrAppend(&line, " --model ", Quoted(model));
  return line;
}

}  // namespace pando::kv
