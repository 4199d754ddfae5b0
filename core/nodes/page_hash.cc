#include "core/nodes/page_hash.h"

#include <openssl/evp.h>

#include <bit>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"

namespace pando {
namespace {

static_assert(std::endian::native == std::endian::little,
              "integers are hashed as they lie in memory");

constexpr std::string_view kDomain = "pando-namespace-v1";

}  // namespace

// Fetched once: EVP_sha256() is looked up again with each hash.
PageHasher::PageHasher()
    : sha256_(EVP_MD_fetch(nullptr, "SHA256", nullptr)),
      context_(EVP_MD_CTX_new()) {
  CHECK(sha256_ != nullptr && context_ != nullptr);
}

PageHasher::~PageHasher() = default;

void PageHasher::Free::operator()(evp_md_st* digest) const {
  EVP_MD_free(digest);
}
void PageHasher::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

PageHash PageHasher::Seed(const NamespaceKey& ns) {
  const auto add = [this](const std::optional<std::string>& field) {
    const uint8_t is_set = field.has_value() ? 1 : 0;
    const uint64_t bytes = is_set ? field->size() : 0;
    Update(&is_set, sizeof(is_set));
    Update(&bytes, sizeof(bytes));
    if (is_set) Update(field->data(), bytes);
  };
  Begin();
  Update(kDomain.data(), kDomain.size());
  add(ns.extra_key);
  add(ns.cache_salt);
  const uint8_t bigram = ns.bigram ? 1 : 0;
  Update(&bigram, sizeof(bigram));
  return Finish();
}

PageHash PageHasher::Next(const PageHash& before, std::span<const Token> tokens,
                          bool bigram) {
  if (bigram) {
    pairs_.clear();
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      pairs_.push_back(tokens[i]);
      pairs_.push_back(tokens[i + 1]);
    }
    tokens = pairs_;
  }
  Begin();
  Update(before.data(), before.size());
  Update(tokens.data(), tokens.size_bytes());
  return Finish();
}

void PageHasher::Begin() {
  CHECK(EVP_DigestInit_ex2(context_.get(), sha256_.get(), nullptr) == 1);
}

void PageHasher::Update(const void* data, size_t bytes) {
  CHECK(EVP_DigestUpdate(context_.get(), data, bytes) == 1);
}

PageHash PageHasher::Finish() {
  PageHash hash;
  CHECK(EVP_DigestFinal_ex(context_.get(), hash.data(), nullptr) == 1);
  return hash;
}

}  // namespace pando
