#ifndef PANDO_SERVICE_HANDLERS_TREE_DUMPS_H_
#define PANDO_SERVICE_HANDLERS_TREE_DUMPS_H_

#include <list>
#include <memory>

#include "core/operators/tree_dump.h"
#include "core/prefix_cache.h"
#include "pando/v1/admin.pb.h"
#include "service/rpc/server_stream.h"

namespace pando {

// Knows the dumps of the tree that are being sent. Each message is one step of
// the work. A dump that is read slowly, or not at all, keeps in memory the
// places that it has still to visit, so the number of dumps is bounded: when
// one more begins, the dump whose caller has not read for the longest time is
// cut off.
//
// Owned by AdminService; lives on the polling thread.
class TreeDumps {
 public:
  using Source = StreamSource<v1::DumpTreeResponse>;

  // `cache` outlives this, and this outlives the sources that Begin returns.
  explicit TreeDumps(PrefixCache* cache) : cache_(cache) {}

  // Returns a source that sends the dump in messages of a bounded size, at
  // least one. A dump that is cut off ends with RESOURCE_EXHAUSTED.
  std::unique_ptr<Source> Begin(TreeDumpWork work);

 private:
  class Stream;

  PrefixCache* const cache_;
  // The unfinished dumps; the one whose last message is oldest comes first.
  std::list<Stream*> under_way_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_TREE_DUMPS_H_
