#include "tests/tiers/blocks/shared_machines.h"

#include <unistd.h>

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tiers/blocks/sealed_block.h"
#include "tiers/shared/folder_store.h"

namespace pando {
namespace {

namespace fs = std::filesystem;

// A store that fails as Faults says.
class FaultyStore final : public RemoteStore {
 public:
  FaultyStore(std::unique_ptr<RemoteStore> store, Faults* faults)
      : store_(std::move(store)), faults_(faults) {}

  absl::StatusOr<Presence> CountPresent(std::span<const BlockKey> keys,
                                        absl::Time deadline) override {
    return store_->CountPresent(keys, deadline);
  }
  void Get(std::span<Transfer> blocks, absl::Time deadline) override {
    faults_->before_call();
    if (!faults_->fails) store_->Get(blocks, deadline);
    for (Transfer& block : blocks) {
      if (faults_->fails || block.key.hash == faults_->unreadable) {
        block.status = Failure();
      }
    }
  }
  void Put(std::span<Transfer> blocks, absl::Time used,
           absl::Time deadline) override {
    faults_->before_call();
    if (blocks.empty()) return;
    if (faults_->fails) {
      for (Transfer& block : blocks) block.status = Failure();
      return;
    }
    faults_->before_put();
    store_->Put(blocks, used, deadline);
    faults_->after_put();
  }
  absl::StatusOr<std::vector<bool>> Touch(std::span<const BlockKey> keys,
                                          absl::Time used,
                                          absl::Time deadline) override {
    faults_->before_call();
    ++faults_->touches;
    faults_->touched += static_cast<int>(keys.size());
    if (faults_->fails) return Failure();
    return store_->Touch(keys, used, deadline);
  }
  absl::Status Erase(const BlockKey& key) override {
    return store_->Erase(key);
  }
  absl::Status EraseAll(std::optional<uint64_t> kind) override {
    return store_->EraseAll(kind);
  }
  bool FreeSome() override { return store_->FreeSome(); }

 private:
  static absl::Status Failure() { return absl::UnavailableError("it is gone"); }

  const std::unique_ptr<RemoteStore> store_;
  Faults* const faults_;
};

}  // namespace

SharedMachines::SharedMachines()
    : folder_(fs::temp_directory_path() /
              absl::StrCat("shared_machines.", getpid())) {
  fs::create_directory(folder_);
  fs::permissions(folder_, fs::perms::owner_all);
}

SharedMachines::~SharedMachines() { fs::remove_all(folder_); }

std::unique_ptr<TieredMemory> SharedMachines::Machine(
    std::string_view secret, const SharedBlockTier::Timeouts& timeouts,
    const BlockFiles::Config& disk) {
  auto folder = FolderStore::Open("block-tier-shared", folder_, kFormOfBlocks);
  EXPECT_TRUE(folder.ok()) << folder.status();
  SharedStore shared = {
      .store = std::make_unique<FaultyStore>(*std::move(folder), &faults_),
      .key = nullptr,
      .digest = kFormOfBlocks};
  if (!secret.empty()) {
    shared.key = std::make_unique<SharedKey>(std::as_bytes(std::span(secret)));
  }
  return std::make_unique<TieredMemory>(
      kMemory,
      BlockTier::Config{
          .disk = disk, .shared = std::move(shared), .timeouts = timeouts});
}

void SharedMachines::ExpectHolds(TieredMemory& machine, const BlockKind& kind,
                                 const Numbers& numbers,
                                 const std::vector<BlockPlace>& places,
                                 uint64_t seed) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_TRUE(IsPlace(places[i])) << numbers[i];
    EXPECT_TRUE(machine.Holds(kind, places[i], numbers[i], seed));
  }
}

void SharedMachines::Await(const std::function<bool()>& is_so) {
  const absl::Time limit = absl::Now() + absl::Seconds(60);
  bool was_so = false;
  while (!(was_so = is_so()) && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(was_so);
}

}  // namespace pando
