#ifndef PANDO_TIERS_NAMESPACE_DIGEST_H_
#define PANDO_TIERS_NAMESPACE_DIGEST_H_

#include <cstdint>
#include <cstring>

#include "core/nodes/page_hash.h"
#include "core/requests/namespace_key.h"

namespace pando {

// Returns the number that names a namespace in tiers. It is the same in every
// process.
inline uint64_t NamespaceDigest(PageHasher& hasher, const NamespaceKey& ns) {
  const PageHash seed = hasher.Seed(ns);
  uint64_t digest = 0;
  std::memcpy(&digest, seed.data(), sizeof(digest));
  return digest;
}

}  // namespace pando

#endif  // PANDO_TIERS_NAMESPACE_DIGEST_H_
