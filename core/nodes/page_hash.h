#ifndef PANDO_CORE_NODES_PAGE_HASH_H_
#define PANDO_CORE_NODES_PAGE_HASH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/requests/namespace_key.h"

struct evp_md_ctx_st;
struct evp_md_st;

namespace pando {

// Names a page by its contents, the same on every machine: SHA-256 over its
// namespace and all tokens up to its end, chained page by page
// (docs/protocol.md says exactly how).
using PageHash = std::array<uint8_t, 32>;

// Computes page hashes. Not thread-safe. Keep one: it is slow to construct.
class PageHasher {
 public:
  PageHasher();
  ~PageHasher();
  PageHasher(const PageHasher&) = delete;
  PageHasher& operator=(const PageHasher&) = delete;

  // The hash that the first page of a prompt in this namespace is chained to.
  PageHash Seed(const NamespaceKey& ns);

  // The hash of the page that follows the page with hash `before`. `tokens`
  // spell the page; in a bigram namespace there is one token more than
  // page_tokens.
  PageHash Next(const PageHash& before, std::span<const Token> tokens,
                bool bigram);

 private:
  struct Free {
    void operator()(evp_md_st* digest) const;
    void operator()(evp_md_ctx_st* context) const;
  };

  void Begin();
  void Update(const void* data, size_t bytes);
  PageHash Finish();

  const std::unique_ptr<evp_md_st, Free> sha256_;
  const std::unique_ptr<evp_md_ctx_st, Free> context_;
  std::vector<Token> pairs_;  // scratch
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_PAGE_HASH_H_
