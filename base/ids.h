#ifndef PANDO_BASE_IDS_H_
#define PANDO_BASE_IDS_H_

#include <cstdint>

#include "base/strong_id.h"

namespace pando {

using Token = uint32_t;

// Index of a page in the pool. Page 0 is the padding page: engines let dummy
// rows write there, so it is never handed out.
using PageId = StrongId<struct PageIdTag, uint32_t>;
inline constexpr PageId kPaddingPage{0};

// Names a session, that is, one attached worker process. Ids are random, so
// that they cannot be guessed; 0 is none.
using SessionId = StrongId<struct SessionIdTag, uint64_t>;

// Names a session to operators. Numbers count up from 1 as sessions open.
using SessionNumber = StrongId<struct SessionNumberTag, uint32_t>;

// Names a writer: a process that has mapped the pool for a session, together
// with the processes to which it has passed the memory on. Writers count up
// from 1; no number is used again.
using WriterId = StrongId<struct WriterIdTag, uint64_t>;

// Names one lock on a prefix. 0 is none.
using LockId = StrongId<struct LockIdTag, uint64_t>;

// Names one wait of a match for a page that another call computes. 0 is none.
using WaitId = StrongId<struct WaitIdTag, uint64_t>;

// Names a call of a session, so that it can be repeated. 0 is none.
using RequestId = StrongId<struct RequestIdTag, uint64_t>;

// Names a namespace to operators. Numbers count up from 1 as namespaces appear.
using NamespaceNumber = StrongId<struct NamespaceNumberTag, uint64_t>;

// Names a kind of blocks: what one engine layout stores. Numbers count up from
// 1 and are not used again while pandod runs; 0 is none.
using KindNumber = StrongId<struct KindNumberTag, uint32_t>;

// Names a block lock. Its client chooses it; unique in the session, not 0.
using BlockLockId = StrongId<struct BlockLockIdTag, uint64_t>;

// Names a reservation of blocks, chosen in the same way. A reservation and a
// lock may have the same number.
using ReservationId = StrongId<struct ReservationIdTag, uint64_t>;

// Where a block lies: the number of a unit of kPlaceBytes in the block memory.
// The highest numbers are no places but say why there is none
// (core/requests/block_requests.h).
using BlockPlace = StrongId<struct BlockPlaceTag, uint32_t>;

}  // namespace pando

#endif  // PANDO_BASE_IDS_H_
