#include "service/handlers/tree_dumps.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "service/handlers/admin_wire.h"

namespace pando {
namespace {

// The most dumps at a time. A dump of a wide tree keeps up to 2.4 MB.
constexpr size_t kMaxDumps = 16;

}  // namespace

class TreeDumps::Stream final : public Source {
 public:
  Stream(TreeDumps* dumps, TreeDumpWork work)
      : dumps_(dumps),
        work_(std::move(work)),
        place_(dumps->under_way_.insert(dumps->under_way_.end(), this)) {}
  ~Stream() override { End(); }

  Next Fill(v1::DumpTreeResponse& message) override {
    if (!work_.has_value()) return Next::kEnd;
    const bool is_complete = dumps_->cache_->Step(*work_);
    for (const TreeNodeInfo& node : work_->TakeNodes()) {
      FillNode(node, message.add_nodes());
    }
    if (is_complete) {
      message.set_omitted(work_->omitted());
      End();
    } else {
      auto& under_way = dumps_->under_way_;
      under_way.splice(under_way.end(), under_way, place_);
    }
    return Next::kMessage;
  }

  absl::Status end() const override { return end_; }

  // Ends the dump with an error; the nodes that are left are not sent.
  void CutOff() {
    end_ = absl::ResourceExhaustedError(
        "the dump was read too slowly; others needed its memory");
    End();
  }

 private:
  void End() {
    if (!work_.has_value()) return;
    work_.reset();  // its memory, too
    dumps_->under_way_.erase(place_);
  }

  TreeDumps* const dumps_;
  std::optional<TreeDumpWork> work_;  // none: the dump is over
  const std::list<Stream*>::iterator place_;
  absl::Status end_;
};

std::unique_ptr<TreeDumps::Source> TreeDumps::Begin(TreeDumpWork work) {
  if (under_way_.size() == kMaxDumps) under_way_.front()->CutOff();
  return std::make_unique<Stream>(this, std::move(work));
}

}  // namespace pando
