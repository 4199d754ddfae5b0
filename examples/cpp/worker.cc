// Two workers share one cache: the first computes the KV of a prompt into the
// shared pages, the second reads it there.
//
//   example_worker /run/pando/pando.sock [MODEL]
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>
#include <vector>

#include "pando/client.h"

namespace {

// Stands for a model: the key of a token at a layer. A real engine runs its
// kernels here, on the same addresses.
float KeyOf(pando::Token token, uint32_t layer) { return token + layer / 64.f; }

template <typename T>
T OrDie(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

// Returns the first float of the key of token `i` of a prompt that lies in
// `pages`.
float& KeyAt(const pando::MappedPool& pool,
             std::span<const pando::PageId> pages, uint32_t layer, size_t i) {
  const uint32_t page_tokens = pool.layout().page_tokens;
  return *reinterpret_cast<float*>(pool.KeyAddress(
      layer, pages[i / page_tokens], i % page_tokens, /*head=*/0));
}

// Serves one prompt; returns how many of its tokens came from the cache.
size_t Serve(pando::Client& client, const pando::MappedPool& pool,
             const std::vector<pando::Token>& prompt) {
  const auto tokens = static_cast<uint32_t>(prompt.size());
  // Admission, in one round trip: match, lock, and reserve pages for the rest.
  // At least the last token must be computed, for its logits.
  pando::Match match = OrDie(client.MatchPrefix(
      prompt,
      {.max_tokens = tokens - 1, .lock = true, .reserve_tokens = tokens}));

  std::vector<pando::PageId> pages = match.page_ids;
  pages.insert(pages.end(), match.reserved.ids.begin(),
               match.reserved.ids.end());
  for (uint32_t layer = 0; layer < pool.layout().layers; ++layer) {
    for (size_t i = 0; i < match.matched_tokens; ++i) {
      if (KeyAt(pool, pages, layer, i) != KeyOf(prompt[i], layer)) {
        std::fprintf(stderr, "token %zu has a wrong key\n", i);
        std::exit(1);
      }
    }
    for (size_t i = match.matched_tokens; i < tokens; ++i) {
      KeyAt(pool, pages, layer, i) = KeyOf(prompt[i], layer);
    }
  }

  // Finish, in one round trip: publish the whole pages, release the lock, free
  // the other pages. The tokens are not sent: the server has held them since
  // the admission.
  const uint32_t computed = tokens - match.matched_tokens;
  const std::span<const pando::PageId> reserved = match.reserved.ids;
  const size_t whole_pages = computed / pool.layout().page_tokens;
  OrDie(client.Insert({}, reserved.first(whole_pages),
                      {.lock = &match.lock,
                       .lock_action = pando::LockAction::kUnlock,
                       .free_page_ids = reserved.subspan(whole_pages),
                       .prompt_tokens = computed}));
  return match.matched_tokens;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: %s ADDRESS [MODEL]\n", argv[0]);
    return 2;
  }
  // If a worker names its model, pandod refuses it when the pool is for another
  // model.
  pando::AttachOptions expected;
  if (argc == 3) expected.model = argv[2];
  std::vector<pando::Token> prompt(1000);
  std::iota(prompt.begin(), prompt.end(), 1);
  for (const char* name : {"worker A", "worker B"}) {
    const auto client =
        OrDie(pando::Client::Connect({.address = argv[1], .name = name}));
    const auto pool = OrDie(client->AttachPool(expected));
    if (pool.layout().dtype != pando::DType::kFloat32) {
      std::fprintf(stderr, "start pandod with --dtype float32\n");
      return 1;
    }
    const size_t cached = Serve(*client, pool, prompt);
    std::printf("%s: %zu tokens, %zu from the cache\n", name, prompt.size(),
                cached);
  }
  return 0;
}
