#ifndef PANDO_SERVICE_HANDLERS_TREE_DUMPS_H_
#define PANDO_SERVICE_HANDLERS_TREE_DUMPS_H_

#include <list>
#include <memory>

#include "core/operators/tree_dump.h"
#include "core/prefix_cache.h"
#include "pando/v1/admin.pb.h"
#include "service/rpc/server_stream.h"

namespace pando {

// The dumps of the tree that are being sent; each message is one step of the
// work. A dump that is read slowly, or not at all, keeps in memory the places
// that it has still to visit. So the number of dumps is bounded: when one more
// begins, the one whose caller has not read for the longest time ends.
//
// Owned by AdminService; lives on the polling thread.
class TreeDumps {
 public:
  using Source = StreamSource<v1::DumpTreeResponse>;

  // `cache` outlives the dumps, which outlive their sources.
  explicit TreeDumps(PrefixCache* cache) : cache_(cache) {}

  // Sends the dump in messages of a bounded size, at least one.
  std::unique_ptr<Source> Begin(TreeDumpWork work);

 private:
  class Stream;

  PrefixCache* const cache_;
  // The unfinished dumps; the one whose last message is oldest comes first.
  std::list<Stream*> under_way_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_TREE_DUMPS_H_
