#include "service/server.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/default_socket.h"
#include "base/status_macros.h"
#include "core/blocks/block_ledger.h"
#include "core/nodes/page_ledger.h"
#include "core/operators/session_ends.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "os/random_id.h"
#include "service/handlers/wire.h"
#include "service/memory/make_pool.h"
#include "service/options/option_checks.h"
#include "service/socket_group.h"
#include "service/start_check.h"
#include "service/start_kv_events.h"

namespace pando {
namespace {

// How often lost sessions and quarantined pages are looked for.
constexpr absl::Duration kHousekeepingPeriod = absl::Milliseconds(100);
// How often free pages are counted.
constexpr absl::Duration kWatermarkPeriod = absl::Milliseconds(10);
// How often the files of tokens are looked at.
constexpr absl::Duration kTokenPeriod = absl::Seconds(1);
// Crashes after this time of serving are not put down to the kept ledger: they
// are not counted, and earlier ones are forgotten.
constexpr absl::Duration kSteadyTime = absl::Minutes(1);
// The shortest time in which a worker may resume its session after pandod was
// restarted.
constexpr absl::Duration kResumeTime = absl::Seconds(10);
// The time that calls may take once the server stops.
constexpr absl::Duration kStopGrace = absl::Milliseconds(200);

// Returns the hit at which the tiers store a page, or 0 if they store it at
// once.
uint32_t StoringHit(const Options& options) {
  if (!HasTiers(options) || options.tier_write == "at-once") return 0;
  return options.tier_write == "first-hit" ? 1 : 2;
}

absl::Status OpenBlockLedger(KeptLedgers& ledgers, BlockOptions& blocks) {
  const auto is_usable = [options =
                              blocks](std::span<std::byte> bytes) mutable {
    options.ledger = bytes;
    return BlockLedger::IsOf(options);
  };
  ASSIGN_OR_RETURN(blocks.ledger,
                   ledgers.Open({.name = kBlockLedger,
                                 .content = "blocks",
                                 .bytes = BlockLedger::BytesFor(blocks),
                                 .is_usable = is_usable}));
  return absl::OkStatus();
}

absl::StatusOr<std::span<std::byte>> OpenPageLedger(
    KeptLedgers& ledgers, const PageLedger::Pool& pool) {
  return ledgers.Open({.name = kPageLedger,
                       .content = "pages",
                       .bytes = PageLedger::BytesFor(pool),
                       .is_usable = [pool](std::span<std::byte> bytes) {
                         return PageLedger::IsOf(pool, bytes);
                       }});
}

// Names the memory of the pages, their layout, and the model that fills them; 0
// if the memory has no name.
uint64_t IdOfPages(const KvPool& pool, const std::string& model) {
  const uint64_t memory = pool.memory_id();
  return memory == 0 ? 0 : memory ^ Fingerprint(pool.layout(), model);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    Options options, KeptDescriptors* kept, std::function<void()> on_exit,
    std::function<bool()> on_restart, OpenPool::OnLayout on_layout) {
  const absl::Time begin = MonotonicNow();
  std::unique_ptr<OpenPool> open;
  if (options.is_open) {
    RETURN_IF_ERROR(CheckPoolFits(options));
    RETURN_IF_ERROR(CheckGpus(options));
    RETURN_IF_ERROR(CheckTiersOfOpenPool(options));
    open = std::make_unique<OpenPool>(options, std::move(on_layout));
    options = WithoutPages(std::move(options));
  }
  RETURN_IF_ERROR(MakeDefaultSocketFolder(options.socket));
  // While the pool is open, the kept memory of a pool is left to the pandod
  // that will have its layout.
  ASSIGN_OR_RETURN(std::unique_ptr<KvPool> pool,
                   MakePool(options, open == nullptr ? kept : nullptr));
  ASSIGN_OR_RETURN(std::unique_ptr<HostMemory> block_memory,
                   MakeBlockMemory(options, *kept));
  auto ledgers = std::make_unique<KeptLedgers>(kept);
  CacheMemory memory{.blocks = BlockOptionsOf(options)};
  if (block_memory != nullptr) {
    memory.blocks.memory_id = block_memory->id();
    RETURN_IF_ERROR(OpenBlockLedger(*ledgers, memory.blocks));
  } else {
    ledgers->Spoil(kBlockLedger);
  }
  if (open != nullptr) {
    // The ledger of pages is left to the pandod that will have the layout, too.
  } else if (!IsPoolKept(options, *kept)) {
    ledgers->Spoil(kPageLedger);
  } else {
    memory.pool = {.page_tokens = options.page_tokens,
                   .capacity_pages = pool->capacity_pages(),
                   .memory_id = IdOfPages(*pool, options.model)};
    ASSIGN_OR_RETURN(memory.page_ledger, OpenPageLedger(*ledgers, memory.pool));
  }
  const EarlierWriters::Ledgers of_before{
      .pages = PageLedger::IsOf(memory.pool, memory.page_ledger),
      .blocks =
          !memory.blocks.ledger.empty() && BlockLedger::IsOf(memory.blocks)};
  // The ledgers do not say which session holds a block.
  memory.keeps_sessions = block_memory == nullptr;
  std::unique_ptr<Server> server(new Server(
      options, kept, std::move(on_exit), std::move(on_restart), std::move(pool),
      std::move(block_memory), std::move(ledgers), memory));
  server->open_pool_ = std::move(open);
  server->FindEarlierWriters(of_before);
  if (!memory.blocks.ledger.empty()) {
    BlockLedger::Complete(memory.blocks.ledger);
  }
  if (!memory.page_ledger.empty()) PageLedger::Complete(memory.page_ledger);
  RETURN_IF_ERROR(server->MakeVerifier());
  ASSIGN_OR_RETURN(server->socket_group_, SocketGroup(options.socket_group));
  RETURN_IF_ERROR(server->MakeAccessControl());
  RETURN_IF_ERROR(server->StartMemorySocket());
  server->TakeOverSessions();
  RETURN_IF_ERROR(server->StartKvEvents());
  RETURN_IF_ERROR(server->StartTiers());
  RETURN_IF_ERROR(server->StartBlockTier());
  server->MakeServices();
  RETURN_IF_ERROR(server->StartLanes());
  RETURN_IF_ERROR(server->StartRpc());
  RETURN_IF_ERROR(server->StartHttp());
  server->ledgers_->Serves();
  if (server->open_pool_ == nullptr) kept->ForgetRest();
  Log(LogLevel::kInfo, "pandod serves",
      {{"socket", options.socket},
       {"tcp", options.tcp},
       {"http", options.http},
       {"kv_events", options.kv_events},
       {"pages", server->pool_->capacity_pages()},
       {"page_tokens", options.page_tokens},
       {"bytes",
        server->pool_->capacity_pages() * server->PageBytesOfAllShards()},
       {"block_bytes", options.memory},
       {"start_ms", absl::ToInt64Milliseconds(MonotonicNow() - begin)}});
  return server;
}

Server::Server(const Options& options, KeptDescriptors* kept,
               std::function<void()> on_exit, std::function<bool()> on_restart,
               std::unique_ptr<KvPool> pool,
               std::unique_ptr<HostMemory> block_memory,
               std::unique_ptr<KeptLedgers> ledgers, const CacheMemory& memory)
    : options_(options),
      kept_(kept),
      on_exit_(std::move(on_exit)),
      on_restart_(std::move(on_restart)),
      run_(RandomId()),
      pool_(std::move(pool)),
      block_memory_(std::move(block_memory)),
      ledgers_(std::move(ledgers)),
      cache_({.page_tokens = options.page_tokens,
              .capacity_pages = pool_->capacity_pages(),
              .eviction_policy = options.eviction_policy,
              .reuse = {.learns_always = options.learn_reuse},
              .low_free_pages = options.low_free_pages,
              .high_free_pages = options.high_free_pages,
              .quota_classes = options.quotas,
              .session_limits = SessionLimitsOf(options),
              .first_told_hit = StoringHit(options),
              .blocks = memory.blocks,
              .ledger = memory.page_ledger,
              .ledger_pool = memory.pool.memory_id,
              .keeps_sessions = memory.keeps_sessions,
              .epoch = run_,
              .on_wait_over =
                  [this](WaitId wait, PendingOutcome outcome) {
                    pending_matches_.WaitOver(wait, outcome);
                  },
              .on_ends = [this] { ends_step_->Request(); },
              .clock = MonotonicNanoseconds}),
      blocks_(&cache_),
      self_check_(&cache_),
      peer_filter_(options.allowed_uids),
      rpc_(&policy_),
      pending_matches_(&cache_, &rpc_),
      stepped_calls_(&cache_, &rpc_),
      drain_announcement_(rpc_.AddWakeup([this] { AnnounceDrain(); })),
      ends_step_(rpc_.AddWakeup([this] { TakeStepOfEnds(); })),
      watermark_step_(rpc_.AddWakeup([this] {
        // Other calls are served between two steps.
        if (cache_.EvictToWatermark() > 0) watermark_step_->Request();
        ShowGauges();
      })),
      check_step_(rpc_.AddWakeup([this] {
        if (!self_check_.Step()) check_step_->Request();
      })) {
  // This tells the cache the time before the first session is opened.
  cache_.ExpireSessions(MonotonicNow(), options_.quarantine);
}

// A part is stopped before the parts that it calls.
Server::~Server() {
  BeginDrain();
  http_.reset();
  if (lanes_ != nullptr) lanes_->Stop();
  rpc_.Shutdown(kStopGrace);
  if (attachments_ != nullptr) {
    // This takes the turn, because the tiers still publish, in turns of their
    // own.
    FairMutexLock turn(&policy_.turn().mutex());
    RunHousekeeping();
  }
  memory_.reset();
  attachments_.reset();
}

absl::Status Server::MakeVerifier() {
  if (options_.verify_pages == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<PageChecksummer> checksummer,
                   pool_->MakeChecksummer());
  verifier_ = std::make_unique<PageVerifier>(
      std::move(checksummer), pool_->capacity_pages(), options_.verify_pages);
  return absl::OkStatus();
}

void Server::FindEarlierWriters(EarlierWriters::Ledgers of_before) {
  cache_.SetSessionLimits({});
  earlier_writers_ = std::make_unique<EarlierWriters>(
      &cache_, &blocks_, *pool_, block_memory_.get(), of_before,
      options_.quarantine);
  cache_.SetSessionLimits(SessionLimitsOf(options_));
}

void Server::TakeOverSessions() {
  const auto& kept = cache_.kept_sessions();
  if (kept.empty()) return;
  const absl::Time now = MonotonicNow();
  const absl::Duration grace = std::max(options_.session_grace, kResumeTime);
  for (const PrefixCache::KeptSession& session : kept) {
    const bool is_owned = access_ == nullptr
                              ? session.owner.empty()
                              : access_->OwnAgain(session.id, session.owner);
    cache_.SuspendSession(session.id, is_owned ? now + grace : now);
    for (WriterId writer : session.writers) {
      if (writer <= earlier_writers_->last()) {
        attachments_->Adopt(session.id, writer);
      } else {
        cache_.WriterGone(writer);
      }
    }
  }
  Log(LogLevel::kInfo, "sessions of the pandod before go on",
      {{"sessions", kept.size()}});
}

absl::Status Server::StartKvEvents() {
  if (options_.kv_events.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(kv_events_, pando::StartKvEvents(options_));
  return absl::OkStatus();
}

Mover::Verifier Server::LoadVerifier() {
  if (verifier_ == nullptr) return {};
  return {.reserved = [this](auto pages) { verifier_->Reserved(pages); },
          .inserted = [this](auto pages) { verifier_->Inserted(pages); }};
}

absl::Status Server::StartTiers() {
  if (!HasTiers(options_)) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      tiers_, Tiers::Start({.model = options_.model,
                            .mover_socket = options_.mover_socket,
                            .kept = kept_,
                            .quarantine = options_.quarantine,
                            .host_bytes = options_.tier_host_bytes,
                            .disk_folder = options_.tier_disk,
                            .disk_bytes = options_.tier_disk_bytes,
                            .shared = options_.tier_shared,
                            .shared_key_file = options_.tier_shared_key_file,
                            .min_load_tokens = options_.tier_min_load_tokens,
                            .stores_at_once = StoringHit(options_) == 0},
                           {.cache = &cache_,
                            .turn = &policy_.turn(),
                            .actions = &rpc_,
                            .verifier = LoadVerifier(),
                            .pool = pool_.get()}));
  if (options_.kv_events_tiers) {
    kv_events_->FollowTiers(tiers_->host_changes(), tiers_->disk_changes());
  }
  return absl::OkStatus();
}

absl::Status Server::StartBlockTier() {
  if (options_.block_tier_disk.empty() && options_.block_tier_shared.empty()) {
    return absl::OkStatus();
  }
  BlockTier::Config config = {
      .disk = {.folder = options_.block_tier_disk,
               .max_bytes = options_.block_tier_disk_bytes},
      .shared = std::nullopt,
      .timeouts = {},
      .stores_at_once = options_.tier_write == "at-once"};
  if (!options_.block_tier_shared.empty()) {
    ASSIGN_OR_RETURN(
        config.shared,
        OpenSharedStore("block-tier-shared", options_.block_tier_shared,
                        options_.tier_shared_key_file, kFormOfBlocks));
  }
  ASSIGN_OR_RETURN(block_tier_, BlockTier::Start(std::move(config),
                                                 {.cache = &cache_,
                                                  .blocks = &blocks_,
                                                  .memory = block_memory_.get(),
                                                  .actions = &rpc_}));
  return absl::OkStatus();
}

std::vector<EventSink*> Server::EventSinks() const {
  std::vector<EventSink*> sinks;
  if (kv_events_ != nullptr) sinks.push_back(kv_events_.get());
  if (tiers_ != nullptr)
    std::ranges::copy(tiers_->stores(), std::back_inserter(sinks));
  return sinks;
}

void Server::MakeServices() {
  const uint64_t epoch = cache_.epoch();
  v1::PoolDescription description;
  FillPool(*pool_, options_.model, &description);
  description.set_is_absent(!options_.has_pool && open_pool_ == nullptr);
  if (open_pool_ != nullptr) {
    description.set_is_open(true);
    description.set_capacity_pages(0);
    for (v1::Shard& shard : *description.mutable_shards()) {
      shard.set_size_bytes(open_pool_->shard_bytes());
    }
  }
  prefix_cache_service_ = std::make_unique<PrefixCacheService>(
      &cache_, &pending_matches_, &stepped_calls_, verifier_.get(),
      options_.max_tokens_per_request, epoch);
  if (tiers_ != nullptr) prefix_cache_service_->set_loader(tiers_->loads());
  pool_service_ = std::make_unique<PoolService>(
      &cache_, &stepped_calls_, memory_.get(), verifier_.get(), description,
      epoch, options_.has_pool, open_pool_.get());
  block_service_ =
      std::make_unique<BlockService>(&cache_, &blocks_, &stepped_calls_,
                                     memory_.get(), options_.memory, epoch);
  block_service_->set_tier(block_tier_.get());
  session_service_ = std::make_unique<SessionService>(
      &cache_, &stepped_calls_, &rpc_, &is_draining_,
      SessionService::Config{.pool = description,
                             .epoch = epoch,
                             .on_closed = [this](SessionId s) { Forget(s); }});
  session_service_->set_grace(options_.session_grace);
  admin_service_ = std::make_unique<AdminService>(
      &cache_, &self_check_, &stepped_calls_,
      AdminService::Config{
          .epoch = run_,
          .max_tokens = options_.max_tokens_per_request,
          .pid_of =
              [this](WriterId writer) { return attachments_->PidOf(writer); },
          .drain =
              [this](bool exit) {
                BeginDrain();
                if (exit) on_exit_();
              },
          .restart = kept_->has_keeper() ? on_restart_ : nullptr});

  pool_service_->set_on_model([this](const std::string& digest) {
    cache_.NoteModel(digest);
    if (tiers_ != nullptr) tiers_->SetModel(digest);
  });
  if (const std::string model = cache_.KeptModel(); !model.empty()) {
    pool_service_->TakeModel(model);
  }
  if (tiers_ != nullptr) {
    admin_service_->set_loader(tiers_->loads());
    admin_service_->set_tiers(tiers_.get());
  }
  if (block_memory_ != nullptr) {
    admin_service_->set_blocks(&blocks_, block_tier_.get());
  }

  events_service_ = std::make_unique<EventsService>(
      &cache_, &rpc_, run_, options_.event_history, EventSinks());

  data_path_service_ =
      std::make_unique<DataPathService>(&policy_, &cache_, &stepped_calls_,
                                        memory_.get(), options_.lane_bytes > 0);

  health_service_ = std::make_unique<HealthService>(
      &rpc_, &is_draining_,
      std::vector<std::string>{
          v1::PrefixCache::service_full_name(),
          v1::PagePool::service_full_name(), v1::Blocks::service_full_name(),
          v1::Sessions::service_full_name(), v1::Admin::service_full_name(),
          v1::Events::service_full_name(), v1::DataPath::service_full_name()});

  health_service_->Register(rpc_metrics_);
  prefix_cache_service_->AddMethodsTo(data_path_);
  pool_service_->AddMethodsTo(data_path_);
  block_service_->AddMethodsTo(data_path_);
  admin_service_->AddMethodsTo(data_path_);
  prefix_cache_service_->Register(rpc_, rpc_metrics_, data_path_);
  pool_service_->Register(rpc_, rpc_metrics_, data_path_);
  block_service_->Register(rpc_, rpc_metrics_, data_path_);
  session_service_->Register(rpc_metrics_);
  admin_service_->Register(rpc_, rpc_metrics_, data_path_);
  events_service_->Register(rpc_metrics_);
  data_path_service_->Register(rpc_, rpc_metrics_, data_path_);
  policy_.call_rates().SetLimit(options_.max_calls_per_second);
  rpc_.AddTimer(kHousekeepingPeriod, [this] { RunHousekeeping(); });
  watermark_timer_ =
      rpc_.AddTimer(WatermarkPeriod(), [this] { watermark_step_->Request(); });
  rpc_.AddTimer(kSteadyTime, [this] { ledgers_->IsSteady(); });
  check_timer_ = rpc_.AddTimer(options_.check_invariants_every,
                               [this] { check_step_->Request(); });
}

void Server::RunHousekeeping() {
  ++turns_;
  attachments_->CheckUnwatched();
  earlier_writers_->Check();
  const ExpiredSessions expired =
      cache_.ExpireSessions(MonotonicNow(), options_.quarantine);
  for (SessionId gone : expired.gone) Forget(gone);
  ShowGauges();
  for (SessionNumber lost : expired.lost) {
    Log(LogLevel::kWarning, "session lost", {{"session", lost.value()}});
  }
  policy_.call_rates().Prune();
  LogRepeats();
}

void Server::TakeStepOfEnds() {
  SessionEnds ends;
  if (SteppedCalls::TakeSteps(cache_, ends) != SteppedCalls::Progress::kDone) {
    ends_step_->Request();
  }
  ShowGauges();
}

void Server::Forget(SessionId ended) {
  if (lanes_ != nullptr) lanes_->Close(ended);
  attachments_->Forget(ended);
  memory_->ForgetTokens(ended);
}

absl::Duration Server::WatermarkPeriod() const {
  return options_.low_free_pages > 0 ? kWatermarkPeriod : absl::ZeroDuration();
}

absl::Status Server::MakeAccessControl() {
  if (options_.credentials.empty()) return absl::OkStatus();
  const auto is_live = [this](SessionId session) { return IsLive(session); };
  ASSIGN_OR_RETURN(access_,
                   AccessControl::Create(options_.credentials, is_live));
  rpc_.AddTimer(kTokenPeriod, [this] {
    if (!access_->RefreshTokens()) return;
    session_service_->EndIfNotAdmitted();
    events_service_->EndIfNotAdmitted();
  });
  return absl::OkStatus();
}

uint64_t Server::PageBytesOfAllShards() const {
  return PageBytes(pool_->layout()) * pool_->shards().size();
}

void Server::BeginDrain() {
  is_draining_ = true;
  cache_.BeginDrain();
  drain_announcement_->Request();
}

void Server::AnnounceDrain() {
  ShowGauges();
  session_service_->AnnounceDrain();
  health_service_->AnnounceDrain();
  if (tiers_ != nullptr) tiers_->BeginDrain();
  if (block_tier_ != nullptr) block_tier_->BeginDrain();
  pending_matches_.ResumeAll();
}

}  // namespace pando
