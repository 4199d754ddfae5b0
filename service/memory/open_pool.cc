#include "service/memory/open_pool.h"

#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/fitting_pandod.h"
#include "base/status_macros.h"
#include "core/nodes/page_ledger.h"
#include "core/requests/errors.h"
#include "os/logging/log.h"
#include "os/shared_memory.h"
#include "service/memory/kept_ledger.h"
#include "service/options/option_table.h"

namespace pando {
namespace {

constexpr uint32_t kSmallestPool = 2;
// The keeper has the flags of a layout under this name. No flag has a zero
// byte.
constexpr char kLayoutName[] = "pool-layout";
constexpr char kBetweenFlags = '\0';
// The most bytes of a text: far above any name of a model, and little enough
// for the system to accept as an argument.
constexpr size_t kMaxTextBytes = 4096;

// Returns the options of a pool with this layout.
absl::StatusOr<Options> WithLayout(const KvShape& shape,
                                   const std::string& model, Options options) {
  // Checks first, because options divide by the layers, and multiply bytes by
  // them.
  RETURN_IF_ERROR(MakeKvLayout(shape, kSmallestPool).status());
  options.is_open = false;
  options.layers = shape.layers;
  options.page_tokens = shape.page_tokens;
  options.layout_order = shape.order;
  options.page_format = shape.page_format;
  options.page_bytes = shape.opaque_bytes * shape.layers;
  if (!shape.is_opaque()) {
    options.kv_planes = shape.kv_planes;
    options.heads = shape.heads;
    options.head_size = shape.head_size;
    options.dtype = shape.dtype;
  }
  if (!model.empty()) options.model = model;
  return options;
}

// Returns the options of the layout as flags, or an error if a flag cannot hold
// its value.
absl::StatusOr<std::vector<std::string>> FlagsOf(const Options& options) {
  std::vector<std::string> flags;
  for (const OptionSpec& spec : OptionTable()) {
    if (!IsOfLayout(spec.name) || !IsInEffect(spec, options)) continue;
    const std::string value = spec.get(options);
    if (value.empty()) continue;
    if (value.size() > kMaxTextBytes || absl::StrContains(value, '\0')) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s has %u bytes; must have at most %u, none of them zero", spec.name,
          value.size(), kMaxTextBytes));
    }
    flags.push_back(absl::StrCat("--", spec.name, "=", value));
  }
  return flags;
}

// Checks that a worker's layout agrees with the given options. The error names
// all differences, and a pandod that would fit.
absl::Status CheckStated(const KvShape& shape, const Options& wanted,
                         const Options& given) {
  std::vector<std::string> differing;
  for (const OptionSpec& spec : OptionTable()) {
    if (!absl::c_linear_search(given.stated, spec.name)) continue;
    if (spec.get(wanted) == spec.get(given)) continue;
    differing.push_back(absl::StrFormat("%s is '%s', the pool's is '%s'",
                                        spec.name, spec.get(wanted),
                                        spec.get(given)));
  }
  if (differing.empty()) return absl::OkStatus();
  const kv::PoolSize size = {.shard_bytes = given.pool_bytes,
                             .shards = given.pool_shards,
                             .is_on_gpu = given.pool_memory == "cuda"};
  return MakeError(
      Reason::kLayoutMismatch,
      absl::StrCat(absl::StrJoin(differing, "; "), "; a pool that fits: ",
                   kv::FittingPandod(shape, wanted.model, size)));
}

absl::Status CannotHave(const absl::Status& why) {
  return MakeError(
      Reason::kInvalidField,
      absl::StrCat("the open pool cannot have this layout: ", why.message()));
}

}  // namespace

absl::Status OpenPool::HasNoPages() {
  return MakeError(Reason::kPoolOpen,
                   "the pool is open: it has no pages before the first engine "
                   "attaches and says its layout");
}

absl::Status OpenPool::Take(const KvShape& shape, const std::string& model) {
  const absl::StatusOr<Options> wanted = WithLayout(shape, model, options_);
  if (!wanted.ok()) return CannotHave(wanted.status());
  RETURN_IF_ERROR(CheckStated(shape, *wanted, options_));
  const absl::StatusOr<std::vector<std::string>> flags = FlagsOf(*wanted);
  if (!flags.ok()) return CannotHave(flags.status());
  const absl::Status begun = on_layout_(*flags);
  if (!begun.ok()) return CannotHave(begun);
  is_taken_ = true;
  Log(LogLevel::kInfo, "the open pool takes the layout of its first engine",
      {{"options", absl::StrJoin(*flags, " ")}});
  return absl::OkStatus();
}

void KeepLayout(const std::vector<std::string>& flags, KeptDescriptors& kept) {
  kept.Forget(kLayoutName);
  if (flags.empty() || !kept.has_keeper()) return;
  const std::string text = absl::StrJoin(flags, std::string(1, kBetweenFlags));
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create(
      "pando-layout", text.size(), SharedMemory::Peers::kMayWrite);
  if (!memory.ok()) {
    Log(LogLevel::kWarning, "the layout of the pool cannot be kept",
        {{"reason", memory.status().message()}});
    return;
  }
  std::memcpy(memory->data(), text.data(), text.size());
  kept.Keep(kLayoutName, memory->fd());
}

std::vector<std::string> KeptLayout(KeptDescriptors& kept) {
  const auto ledger = SharedMemory::Adopt(kept.Look(kPageLedger));
  const auto layout = SharedMemory::Adopt(kept.Take(kLayoutName));
  if (!ledger.ok() || !layout.ok()) return {};
  const std::span<std::byte> bytes(ledger->data(), ledger->size());
  if (!PageLedger::HasSessions(bytes) || IsGivenUp(StartOf(bytes))) return {};
  const std::string text(reinterpret_cast<const char*>(layout->data()),
                         layout->size());
  return absl::StrSplit(text, kBetweenFlags);
}

absl::Status CheckKeptLayout(const Options& given, const Options& begun) {
  if (begun.is_open) return absl::InternalError("it leaves the pool open");
  if (given.memory > 0) {
    return absl::FailedPreconditionError(
        "no session goes on beside block memory");
  }
  for (const OptionSpec& spec : OptionTable()) {
    if (absl::c_linear_search(given.stated, spec.name) &&
        spec.get(given) != spec.get(begun)) {
      return absl::FailedPreconditionError(
          absl::StrCat("--", spec.name, " is now ", spec.get(given)));
    }
  }
  return absl::OkStatus();
}

Options WithoutPages(Options options) {
  options.has_pool = false;
  options.pool_memory = "host";
  options.pool_devices.clear();
  options.pool_bytes = 0;
  options.pool_pages = kSmallestPool;
  options.layers = 1;
  options.heads = 1;
  options.low_free_pages = 0;
  options.high_free_pages = 0;
  options.verify_pages = 0;
  options.quotas.clear();
  options.kv_events.clear();
  options.kv_events_tiers = false;
  options.tier_host_bytes = 0;
  options.tier_disk.clear();
  options.tier_shared.clear();
  return options;
}

}  // namespace pando
