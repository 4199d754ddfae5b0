// pandoctl explain-block: why the block of a key is found or not.

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/table.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

std::string EvictionText(v1::BlockEviction reason) {
  switch (reason) {
    case v1::BLOCK_EVICTION_ROOM:
      return "another block of its kind";
    case v1::BLOCK_EVICTION_EXTENT:
      return "another kind, which got its extent";
    case v1::BLOCK_EVICTION_KIND_ENDED:
      return "nothing: its kind ended";
    default:
      return "unknown";
  }
}

std::string WriterText(const v1::ExplainBlockResponse& answer) {
  if (answer.session_number() == 0) return "a session that is lost";
  return absl::StrCat("session ", answer.session_number(), " (",
                      NameText(answer.client_name()), ")");
}

std::string FateText(const v1::ExplainBlockResponse& answer) {
  const std::string age = AgeText(answer.age_ms());
  switch (answer.fate()) {
    case v1::BLOCK_FATE_READY:
      return absl::StrCat("it is found; ", Counted(answer.locks(), "lock"),
                          ", followed by ",
                          Counted(answer.followers(), "block"));
    case v1::BLOCK_FATE_PENDING:
      return absl::StrFormat("%s has been writing it for %s",
                             WriterText(answer), age);
    case v1::BLOCK_FATE_OVERDUE:
      return absl::StrFormat(
          "%s reserved it %s ago, which is too long: it reads as missing",
          WriterText(answer), age);
    case v1::BLOCK_FATE_EVICTED:
      return absl::StrFormat("it was evicted %s ago, for: %s", age,
                             EvictionText(answer.evicted_for()));
    case v1::BLOCK_FATE_NEVER_STORED:
      return "it was never published, or was evicted long ago";
    default:
      return "unknown";
  }
}

}  // namespace

absl::Status ExplainBlock(const Context& context) {
  v1::ExplainBlockRequest request;
  request.set_kind_number(context.options.kind_number);
  const std::string& key = context.options.block_key;
  if (key.size() % 2 != 0 || !absl::c_all_of(key, absl::ascii_isxdigit)) {
    return absl::InvalidArgumentError(
        "KEY must be in hexadecimal, two digits for each byte");
  }
  request.set_key(absl::HexStringToBytes(key));
  ASSIGN_OR_RETURN(const auto answer, context.server.Ask(request));
  if (!context.output.is_table()) {
    context.output.Print(answer);
    return absl::OkStatus();
  }
  const std::string fate = v1::BlockFate_Name(answer.fate());
  context.output.Print(NamedValues(
      {{"block", absl::StrCat(absl::StripPrefix(fate, "BLOCK_FATE_"), ": ",
                              FateText(answer))},
       {"disk tier", answer.is_kept() ? "has it" : "has it not"}}));
  return absl::OkStatus();
}

}  // namespace pando::ctl
