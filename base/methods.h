// The methods of the protocol, in one table. The numbers of lanes, the data
// path of pandod, its batches, the permissions and the C++ client are made from
// it; a method that the protocol has and the table lacks, or the other way
// round, does not compile or fails tests/service/methods_test.cc.
//
// A row names the method's service and the method; its messages are
// <method>Request and <method>Response. Role: the least that a caller needs
// (service/security/credential.h). Kind:
//   kOwn              it concerns what the caller names
//   kSpansNamespaces  it shows or changes the contents of all namespaces
//   kGivesBack        it only gives something back, so its rate has no limit: a
//                     worker that is refused there may never try again
#ifndef PANDO_BASE_METHODS_H_
#define PANDO_BASE_METHODS_H_

// clang-format off

// What an engine calls for each request: over gRPC, on a lane and in a batch. A
// row begins with the number and the name of the method's fields in
// pando.v1.BatchedRequest and BatchedResponse; the number names it on a lane.
// MatchPrefix with `lock` needs a worker: AccessControl sees the request.
#define PANDO_DATA_PATH_METHODS(METHOD)                                      \
  METHOD(1, match_prefix,   PrefixCache, MatchPrefix,   kReader, kOwn)       \
  METHOD(2, match_prefixes, PrefixCache, MatchPrefixes, kReader, kOwn)       \
  METHOD(3, insert,         PrefixCache, Insert,        kWorker, kOwn)       \
  METHOD(4, lock,           PrefixCache, Lock,          kWorker, kOwn)       \
  METHOD(5, unlock,         PrefixCache, Unlock,        kWorker, kGivesBack) \
  METHOD(6, allocate_pages, PagePool,    AllocatePages, kWorker, kOwn)       \
  METHOD(7, free_pages,     PagePool,    FreePages,     kWorker, kGivesBack) \
  METHOD(8, get_stats,      Admin,       GetStats,      kReader, kOwn)       \
  METHOD(9, lookup_blocks,  Blocks,      LookupBlocks,  kWorker, kOwn)       \
  METHOD(10, acquire_blocks, Blocks,     AcquireBlocks, kWorker, kOwn)       \
  METHOD(11, reserve_blocks, Blocks,     ReserveBlocks, kWorker, kOwn)       \
  METHOD(12, publish_blocks, Blocks,     PublishBlocks, kWorker, kOwn)       \
  METHOD(13, discard_blocks, Blocks,     DiscardBlocks, kWorker, kGivesBack) \
  METHOD(14, release_blocks, Blocks,     ReleaseBlocks, kWorker, kGivesBack) \
  METHOD(16, reset_kinds,   Blocks,      ResetKinds,    kWorker, kOwn)

// All others: over gRPC alone. Each call in a Batch needs what it needs by
// itself.
#define PANDO_GRPC_METHODS(METHOD)                                  \
  METHOD(PrefixCache, Evict,             kAdmin,  kSpansNamespaces) \
  METHOD(PagePool,    DescribePool,      kReader, kOwn)             \
  METHOD(PagePool,    AttachPool,        kWorker, kOwn)             \
  METHOD(Blocks,      AttachMemory,      kWorker, kOwn)             \
  METHOD(Blocks,      OpenKinds,         kWorker, kOwn)             \
  METHOD(Blocks,      FindKinds,         kWorker, kOwn)             \
  METHOD(DataPath,    OpenLane,          kWorker, kOwn)             \
  METHOD(DataPath,    Batch,             kReader, kOwn)             \
  METHOD(Sessions,    Open,              kWorker, kOwn)             \
  METHOD(Sessions,    End,               kWorker, kGivesBack)       \
  METHOD(Events,      Watch,             kReader, kSpansNamespaces) \
  METHOD(Admin,       ListNamespaces,    kReader, kSpansNamespaces) \
  METHOD(Admin,       ListSessions,      kReader, kSpansNamespaces) \
  METHOD(Admin,       ListLocks,         kReader, kSpansNamespaces) \
  METHOD(Admin,       ListQuarantine,    kReader, kSpansNamespaces) \
  METHOD(Admin,       ExplainMatch,      kReader, kSpansNamespaces) \
  METHOD(Admin,       ListKinds,         kReader, kSpansNamespaces) \
  METHOD(Admin,       ExplainBlock,      kReader, kSpansNamespaces) \
  METHOD(Admin,       DumpTree,          kReader, kSpansNamespaces) \
  METHOD(Admin,       Flush,             kAdmin,  kSpansNamespaces) \
  METHOD(Admin,       SetEvictionPolicy, kAdmin,  kSpansNamespaces) \
  METHOD(Admin,       ReleaseLocks,      kAdmin,  kSpansNamespaces) \
  METHOD(Admin,       FreeQuarantine,    kAdmin,  kSpansNamespaces) \
  METHOD(Admin,       CheckInvariants,   kAdmin,  kSpansNamespaces) \
  METHOD(Admin,       Drain,             kAdmin,  kSpansNamespaces)

// clang-format on

#endif  // PANDO_BASE_METHODS_H_
