#include "gpu/page_copy.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "gpu/page_copy_plan.h"

namespace pando {

absl::StatusOr<PageCopyPlan> PlanPageCopy(const PageMemory& from,
                                          const PageMemory& to,
                                          uint32_t num_pages) {
  const KvLayout& a = from.layout;
  const KvLayout& b = to.layout;
  const PageCut cut = CutOf(a);
  if (a.layers != b.layers || a.kv_planes != b.kv_planes ||
      cut.piece_bytes != CutOf(b).piece_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "pages of %u layers, %u planes and %u bytes cannot be copied to pages "
        "of %u layers, %u planes and %u bytes",
        a.layers, a.kv_planes, PageBytes(a), b.layers, b.kv_planes,
        PageBytes(b)));
  }
  return PageCopyPlan{.from = PiecesOf(from),
                      .to = PiecesOf(to),
                      .cut = cut,
                      .num_pages = num_pages};
}

absl::Status CopyPagesOnHost(const PageMemory& from, const PageMemory& to,
                             uint32_t num_pages) {
  ASSIGN_OR_RETURN(const PageCopyPlan plan, PlanPageCopy(from, to, num_pages));
  for (uint32_t piece = 0; piece < plan.cut.pieces; ++piece) {
    for (uint64_t i = 0; i < plan.num_tiles(); ++i) {
      const CopyTile tile = plan.At(i, piece);
      std::memcpy(tile.to, tile.from, tile.bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace pando
