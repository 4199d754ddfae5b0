#include "tiers/redis/redis_connection.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "os/monotonic_clock.h"
#include "tests/tiers/redis/scripted_server.h"

namespace pando {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

absl::Time Late() { return MonotonicNow() + absl::Minutes(2); }

std::string Ok(const std::string&) { return "+OK\r\n"; }

// A file that contains a password. Write replaces the password.
class PasswordFile {
 public:
  explicit PasswordFile(const std::string& password) { Write(password); }
  ~PasswordFile() { fs::remove_all(folder_); }

  void Write(const std::string& password) { std::ofstream(path()) << password; }
  std::string path() const { return folder_ / "password"; }

 private:
  static fs::path MakeFolder() {
    std::string folder = fs::temp_directory_path() / "pando_redis_XXXXXX";
    return mkdtemp(folder.data());
  }

  const fs::path folder_ = MakeFolder();
};

absl::StatusOr<RespReply> Ask(RedisConnection& connection,
                              const RespRequest& request) {
  std::vector<iovec> parts;
  request.AppendTo(parts);
  const absl::Status sent = connection.Send(std::move(parts), Late());
  if (!sent.ok()) return sent;
  return connection.replies().Read(RespReader::kMaxShortReply, Late());
}

TEST(RedisConnectionTest, WithoutAPasswordNothingComesBeforeTheFirstCommand) {
  ScriptedServer server(Ok);
  const RedisLogin login;
  auto connection = RedisConnection::Open(server.address(), login, Late());
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(Ask(**connection, RespRequest({"PING"}))->text, "OK");
  EXPECT_THAT(server.commands(), ElementsAre("PING"));
}

TEST(RedisConnectionTest, ThePasswordIsReadForEachConnection) {
  ScriptedServer server(Ok);
  PasswordFile file(" one\n");
  const RedisLogin login = {.password_file = file.path()};
  EXPECT_TRUE(RedisConnection::Open(server.address(), login, Late()).ok());
  file.Write("two");
  EXPECT_TRUE(RedisConnection::Open(server.address(), login, Late()).ok());
  EXPECT_THAT(server.commands(), ElementsAre("AUTH one", "AUTH two"));
}

TEST(RedisConnectionTest, AUserIsNamedBeforeThePassword) {
  ScriptedServer server(Ok);
  PasswordFile file("secret");
  const RedisLogin login = {.user = "pando", .password_file = file.path()};
  EXPECT_TRUE(RedisConnection::Open(server.address(), login, Late()).ok());
  EXPECT_THAT(server.commands(), ElementsAre("AUTH pando secret"));
}

TEST(RedisConnectionTest, APasswordThatCannotBeReadIsAnErrorThatNamesTheFile) {
  ScriptedServer server(Ok);
  PasswordFile file(" \n");
  for (const std::string& path : {file.path(), file.path() + ".none"}) {
    const RedisLogin login = {.password_file = path};
    const absl::Status status =
        RedisConnection::Open(server.address(), login, Late()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
  EXPECT_THAT(server.commands(), IsEmpty());
}

TEST(RedisConnectionTest, ARefusedLoginSaysTheFirstWordOfTheReasonAlone) {
  ScriptedServer server([](const std::string& command) {
    return "-ERR unknown command '" + command + "'\r\n";
  });
  PasswordFile file("secret");
  const RedisLogin login = {.password_file = file.path()};
  const absl::Status status =
      RedisConnection::Open(server.address(), login, Late()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ERR"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
}

TEST(RedisConnectionTest, WhatWasNotAskedForMakesItUnfitForAnotherUse) {
  ScriptedServer server([](const std::string& command) {
    return command == "TWICE" ? "+a\r\n+b\r\n" : "+a\r\n";
  });
  const RedisLogin login;
  auto connection = RedisConnection::Open(server.address(), login, Late());
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_TRUE(Ask(**connection, RespRequest({"ONCE"})).ok());
  EXPECT_TRUE((*connection)->IsQuiet());
  EXPECT_TRUE(Ask(**connection, RespRequest({"TWICE"})).ok());
  EXPECT_FALSE((*connection)->IsQuiet());
}

TEST(RedisConnectionTest, AnErrorOfTheServerIsShortPlainText) {
  const RespReply full = {.kind = RespReply::Kind::kError,
                          .text = "OOM command not allowed"};
  EXPECT_TRUE(absl::IsResourceExhausted(ErrorOf(full)));
  const RespReply odd = {.kind = RespReply::Kind::kError,
                         .text = "ERR \x1b[31m" + std::string(1000, 'x')};
  const absl::Status status = ErrorOf(odd);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("ERR \\x1b[31m"));
  EXPECT_LT(status.message().size(), 300u);
}

}  // namespace
}  // namespace pando
