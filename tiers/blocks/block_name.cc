#include "tiers/blocks/block_name.h"

#include <openssl/evp.h>

#include <cstring>

#include "base/check.h"

namespace pando {
namespace {

constexpr std::string_view kKindDomain = "pando-block-kind-v1";

PageHash Sha256(std::string_view bytes) {
  PageHash hash;
  CHECK(EVP_Digest(bytes.data(), bytes.size(), hash.data(), nullptr,
                   EVP_sha256(), nullptr) == 1);
  return hash;
}

void AddNumber(uint64_t number, std::string& to) {
  to.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AddText(std::string_view text, std::string& to) {
  AddNumber(text.size(), to);
  to.append(text);
}

void AddOptional(const std::optional<std::string>& text, std::string& to) {
  AddNumber(text.has_value() ? 1 : 0, to);
  AddText(text.value_or(""), to);
}

}  // namespace

uint64_t TierKind::name() const {
  uint64_t name = 0;
  std::memcpy(&name, digest.data(), sizeof(name));
  return name;
}

TierKind TierKindOf(const BlockKind& kind) {
  const KindSpec& spec = kind.spec;
  std::string all(kKindDomain);
  AddOptional(spec.ns.extra_key, all);
  AddOptional(spec.ns.cache_salt, all);
  AddNumber(spec.ns.bigram ? 1 : 0, all);
  AddText(spec.identity, all);
  AddNumber(spec.key_bytes, all);
  AddNumber(spec.shard_bytes, all);
  AddNumber(spec.shards, all);
  return {.number = kind.number,
          .digest = Sha256(all),
          .key_bytes = spec.key_bytes,
          .block_bytes = kind.shard_stride * spec.shards,
          .label = spec.label};
}

PageHash TierKeyOf(std::string_view key) {
  PageHash hash = {};
  if (key.size() > hash.size()) return Sha256(key);
  std::memcpy(hash.data(), key.data(), key.size());
  return hash;
}

}  // namespace pando
