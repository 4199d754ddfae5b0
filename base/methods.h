// The one table of the methods of the protocol. The method numbers on lanes,
// the data path of pandod, its batches, the permissions and the C++ client are
// made from it. If the table and the protocol do not have the same methods, the
// code does not compile or tests/service/methods_test.cc fails.
//
// A row has the service and the method; its messages are called <method>Request
// and <method>Response. Then follow the role, which is the least role that a
// caller needs (service/security/credential.h), and the kind:
//   kOwn              it concerns what the caller names
//   kSpansNamespaces  it shows or changes the contents of all namespaces
//   kGivesBack        it only gives something back, so its rate has no limit: a
//                     worker that is refused there may never try again
#ifndef PANDO_BASE_METHODS_H_
#define PANDO_BASE_METHODS_H_

// clang-format off

// The methods that an engine calls for each request, over gRPC, on a lane or in
// a batch. A row begins with the number and the name of the method's field in
// pando.v1.BatchedRequest and BatchedResponse; on a lane, the number names the
// method. MatchPrefix with `lock` needs the role of a worker; AccessControl
// looks at the request for that.
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

// All other methods, which go over gRPC only. Each call in a Batch needs the
// role that it needs outside of a batch.
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
  METHOD(Admin,       Drain,             kAdmin,  kSpansNamespaces) \
  METHOD(Admin,       Restart,           kAdmin,  kSpansNamespaces)

// clang-format on

#endif  // PANDO_BASE_METHODS_H_
