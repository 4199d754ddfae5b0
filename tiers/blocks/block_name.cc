#include "tiers/blocks/block_name.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>

#include "base/check.h"
#include "gpu/page_checksum_plan.h"

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
  PageHash name = {};
  if (key.size() <= name.size()) {
    std::memcpy(name.data(), key.data(), key.size());
    return name;
  }
  std::array<uint64_t, kMaxKeyBytes / sizeof(uint64_t)> words = {};
  std::memcpy(words.data(), key.data(), key.size());
  std::array<uint64_t, 4> mixed = {words[0], words[1]};
  for (size_t i = 0; i < words.size(); ++i) {
    mixed[2] += MixWord(words[i], i);
    mixed[3] += MixWord(words[i], words.size() + i);
  }
  std::memcpy(name.data(), mixed.data(), name.size());
  return name;
}

PageHash SealedKeyOf(std::string_view key) {
  return key.size() <= sizeof(PageHash) ? TierKeyOf(key) : Sha256(key);
}

}  // namespace pando
