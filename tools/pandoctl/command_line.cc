#include "tools/pandoctl/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/eviction_policies.h"
#include "base/unknown_name.h"
#include "tools/pandoctl/completion.h"
#include "tools/pandoctl/exit_code.h"
#include "tools/pandoctl/help.h"

namespace pando::ctl {
namespace {

const std::vector<std::string> kFormats = {"table", "json", "yaml"};
const std::vector<std::string> kPolicies(kEvictionPolicyNames.begin(),
                                         kEvictionPolicyNames.end());
const std::vector<std::string> kShells = {"bash", "zsh"};

// The words in --help for the value of an option.
constexpr const char* kNumber = "N";
constexpr const char* kSeconds = "SECONDS";
constexpr const char* kFile = "FILE";

void NoFlags(CLI::App&, Options&) {}

void CountFlag(CLI::App& verb, Options& options) {
  verb.add_option("-n,--count", options.count, "Stop after N lines; 0: never")
      ->type_name(kNumber)
      ->capture_default_str();
}

void RepeatFlags(CLI::App& verb, Options& options) {
  verb.add_option("-i,--interval", options.interval_s,
                  "Time between two lines, from 0.01 to 86400")
      ->check(CLI::Range(0.01, 86400.0))
      ->type_name(kSeconds)
      ->capture_default_str();
  CountFlag(verb, options);
}

void TopFlags(CLI::App& verb, Options& options) {
  RepeatFlags(verb, options);
  verb.add_option("--sessions", options.sessions_like,
                  "Only sessions whose names contain this")
      ->type_name("NAME");
}

void LimitFlag(CLI::App& verb, Options& options) {
  verb.add_option("--limit", options.limit,
                  "List at most N entries, from 1 to 100000")
      ->check(CLI::Range(1, 100'000))
      ->type_name(kNumber)
      ->capture_default_str();
}

void BlockFlags(CLI::App& verb, Options& options) {
  verb.add_option("KIND", options.kind_number,
                  "Number of the kind in 'pandoctl kinds'")
      ->required();
  verb.add_option("KEY", options.block_key, "Key of the block, in hexadecimal")
      ->required();
}

void NamespaceFlag(CLI::App& verb, Options& options) {
  verb.add_option("--namespace", options.namespace_number,
                  "Only the namespace of this number in 'pandoctl namespaces'")
      ->type_name(kNumber);
}

void TreeFlags(CLI::App& verb, Options& options) {
  LimitFlag(verb, options);
  NamespaceFlag(verb, options);
}

void PromptFlags(CLI::App& verb, Options& options) {
  auto* const tokens = verb.add_option("TOKENS", options.tokens,
                                       "Token ids; without them, a list is "
                                       "read from stdin: with commas, or JSON");
  verb.add_option("--tokens-file", options.tokens_file,
                  "Read the token ids from a file")
      ->type_name(kFile)
      ->excludes(tokens);
  verb.add_option("--extra-key", options.extra_key,
                  "Extra key of the namespace")
      ->type_name("KEY");
  verb.add_option("--cache-salt-file", options.cache_salt_file,
                  "File with the cache salt of the namespace")
      ->type_name(kFile);
  verb.add_flag("--bigram", options.bigram,
                "The namespace compares pairs of tokens (EAGLE)");
}

void LockFlags(CLI::App& verb, Options& options) {
  LimitFlag(verb, options);
  verb.add_option("--session", options.session_number,
                  "Only the session of this number in 'pandoctl sessions'")
      ->type_name(kNumber);
  verb.add_option("--release", options.release_session,
                  "Take all locks away from the session of this number")
      ->type_name(kNumber);
}

void QuarantineFlags(CLI::App& verb, Options& options) {
  LimitFlag(verb, options);
  verb.add_option("--free", options.free_session,
                  "Free the pages of the lost session of this number")
      ->type_name(kNumber);
}

void EvictFlags(CLI::App& verb, Options& options) {
  verb.add_option("PAGES", options.evicted_pages, "Evict at most so many pages")
      ->required();
}

void FlushFlags(CLI::App& verb, Options& options) {
  auto* const what = verb.add_option_group("what");
  NamespaceFlag(*what, options);
  what->add_flag("--all", options.all, "All namespaces");
  what->require_option(1);
}

void PolicyFlags(CLI::App& verb, Options& options) {
  verb.add_option("NAME", options.policy,
                  "Change the policy to: " + absl::StrJoin(kPolicies, ", "));
}

void DrainFlags(CLI::App& verb, Options& options) {
  verb.add_flag("--exit", options.exit, "Also end pandod, as SIGTERM does");
  verb.add_flag("--wait", options.wait,
                "Wait until nothing is locked or reserved any more");
}

void WatchFlags(CLI::App& verb, Options& options) {
  CountFlag(verb, options);
  auto* const snapshot = verb.add_flag("--snapshot", options.snapshot,
                                       "Begin with what is cached already");
  verb.add_option("--kv-events", options.kv_events,
                  "Watch the events for routers, of pandod or an engine, at "
                  "tcp://host:port")
      ->type_name("ENDPOINT")
      ->excludes(snapshot);
  verb.add_option("--topic", options.topic,
                  "Only topics that begin with this (with --kv-events)")
      ->type_name("PREFIX");
}

void FleetFlags(CLI::App& verb, Options& options) {
  verb.add_option("--addresses", options.addresses,
                  "Addresses of the machines, separated by commas; a host name "
                  "with several addresses stands for all of them")
      ->type_name("LIST")
      ->delimiter(',');
}

void HealthFlags(CLI::App& verb, Options& options) {
  verb.add_option("--service", options.service,
                  "readiness, liveness, or the name of a gRPC service")
      ->type_name("NAME");
  verb.add_flag("--invariants", options.invariants,
                "Also verify the whole index");
}

void ClientFlags(CLI::App& verb, Options& options) {
  verb.add_option(
          "--clients", options.clients,
          "Client processes, from 1 to 256; requests are dealt out in order")
      ->check(CLI::Range(1, 256))
      ->type_name(kNumber)
      ->capture_default_str();
  verb.add_flag("--handles", options.handles,
                "Begin at handles of earlier requests, and send only the "
                "tokens after them");
  verb.add_option("--transport", options.transport,
                  "Make calls over a lane (shared memory) or grpc; by default "
                  "over a lane if there is one")
      ->check(CLI::IsMember({"lane", "grpc"}))
      ->type_name("WAY");
}

void ReplayFlags(CLI::App& verb, Options& options) {
  verb.add_option("TRACE", options.trace,
                  "File of the trace: JSON lines, plain or gzipped")
      ->required()
      ->check(CLI::ExistingFile);
  verb.add_option("--requests", options.requests,
                  "Replay only the first N requests; 0: all")
      ->type_name(kNumber);
  ClientFlags(verb, options);
}

void BenchFlags(CLI::App& verb, Options& options) {
  constexpr uint32_t kMaxTokens = 1 << 20;
  replay::MadeUpChats& chats = options.chats;
  verb.add_option("--requests", chats.requests,
                  "Number of requests, from 1 to 10000000")
      ->check(CLI::Range(1, 10'000'000))
      ->type_name(kNumber)
      ->capture_default_str();
  verb.add_option("--prompt-tokens", chats.prompt_tokens,
                  "Tokens of each prompt, from 1 to 1048576")
      ->check(CLI::Range(1u, kMaxTokens))
      ->type_name(kNumber)
      ->capture_default_str();
  verb.add_option("--system-prompts", chats.system_prompts,
                  "Number of different system prompts that prompts begin with, "
                  "from 1 to 1000000")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name(kNumber)
      ->capture_default_str();
  verb.add_option("--system-prompt-tokens", chats.system_prompt_tokens,
                  "Tokens of each system prompt, from 0 to 1048576")
      ->check(CLI::Range(0u, kMaxTokens))
      ->type_name(kNumber)
      ->capture_default_str();
  ClientFlags(verb, options);
}

struct Verb {
  const char* name;
  const char* help;
  absl::Status (*run)(const Context&);
  void (*add_flags)(CLI::App&, Options&);
  const char* examples;
};

constexpr Verb kFleetVerbs[] = {
    {"explain", "Which machines hold a prompt", FleetExplain, PromptFlags,
     "  pandoctl fleet --addresses gpu-1:9465,gpu-2:9465 explain 1 15043"},
    {"prefixes", "Which prefixes several machines hold, and their bytes",
     FleetPrefixes, LimitFlag,
     "  pandoctl fleet --addresses gpu-1:9465,gpu-2:9465 prefixes --limit 10"},
};

constexpr Verb kVerbs[] = {
    {"status", "Overview of the server, its pool and its cache", Status,
     NoFlags,
     "  pandoctl status\n"
     "  pandoctl status -o json"},
    {"stat", "Print a line of rates and page states each interval", Stat,
     RepeatFlags,
     "  pandoctl stat -i 5\n"
     "  pandoctl stat -n 10 -o json"},
    {"top", "Rates, page states and who holds what, live", Top, TopFlags,
     "  pandoctl top\n"
     "  pandoctl top -i 0.5 --sessions vllm"},
    {"tree", "List the nodes of the radix tree", Tree, TreeFlags,
     "  pandoctl tree --limit 50\n"
     "  pandoctl tree --namespace 1"},
    {"match", "Tell how much of a prompt is cached", Match, PromptFlags,
     "  pandoctl match 1 15043 29892\n"
     "  echo '[1, 15043, 29892]' | pandoctl match --extra-key my-lora"},
    {"explain", "Explain why a prompt matches no further", Explain, PromptFlags,
     "  pandoctl explain 1 15043 29892\n"
     "  pandoctl explain --extra-key my-lora 1 15043 29892"},
    {"namespaces",
     "List namespaces and what each has cached, the largest first", Namespaces,
     LimitFlag, "  pandoctl namespaces --limit 10"},
    {"sessions", "List the attached workers", Sessions, LimitFlag,
     "  pandoctl sessions"},
    {"kinds", "List the kinds of blocks, those with the most memory first",
     Kinds, LimitFlag, "  pandoctl kinds --limit 10"},
    {"explain-block", "Explain why the block of a key is found or not",
     ExplainBlock, BlockFlags,
     "  pandoctl explain-block 1 "
     "5df6e0e2761359d30a8275058e299fcc0381534545f55cf43e41983f5d4c9456"},
    {"locks",
     "List locks and who holds them, or release them; the oldest first", Locks,
     LockFlags,
     "  pandoctl locks --limit 10\n"
     "  pandoctl locks --session 3\n"
     "  pandoctl locks --release 3"},
    {"quarantine", "List lost workers whose pages may still be written to",
     Quarantine, QuarantineFlags,
     "  pandoctl quarantine\n"
     "  pandoctl quarantine --free 3"},
    {"evict", "Evict pages in the order of the eviction policy", Evict,
     EvictFlags, "  pandoctl evict 1000"},
    {"flush", "Evict everything that is not locked", Flush, FlushFlags,
     "  pandoctl flush --namespace 1\n"
     "  pandoctl flush --all --yes"},
    {"policy", "Show or change the eviction policy", Policy, PolicyFlags,
     "  pandoctl policy\n"
     "  pandoctl policy slru"},
    {"drain", "Make pandod admit nothing new", Drain, DrainFlags,
     "  pandoctl drain --wait\n"
     "  pandoctl drain --exit --yes"},
    {"restart", "End pandod at once, so that its keeper starts it again",
     Restart, NoFlags, "  pandoctl restart --yes"},
    {"watch", "Watch what enters and leaves the cache", Watch, WatchFlags,
     "  pandoctl watch --snapshot\n"
     "  pandoctl watch -n 100 -o json\n"
     "  pandoctl watch --kv-events tcp://127.0.0.1:5557"},
    {"fleet", "Compare several machines", Fleet, FleetFlags,
     "  pandoctl fleet --addresses gpu-1:9465,gpu-2:9465\n"
     "  pandoctl fleet --addresses pando.models.svc:9465 prefixes"},
    {"health", "Tell whether pandod serves; exit status 4 if not", Health,
     HealthFlags,
     "  pandoctl health\n"
     "  pandoctl health --service liveness"},
    {"replay", "Replay a recorded trace and measure its calls", Replay,
     ReplayFlags,
     "  pandoctl replay bench/data/conversation_excerpt.jsonl --clients 2"},
    {"bench", "Make up requests and measure their calls", Bench, BenchFlags,
     "  pandoctl bench --requests 1000 --prompt-tokens 4096"},
    {"version", "Print the versions of pandoctl and pandod", Version, NoFlags,
     "  pandoctl version"},
};

void AddCommonFlags(CLI::App& app, Options& options) {
  app.add_option(
         "--address", options.address,
         "unix:/path or host:port; if none is given, the default socket "
         "of pandod")
      ->type_name("ADDRESS")
      ->envname("PANDO_ADDRESS");
  app.add_option("--timeout", options.timeout_s,
                 "Time limit of each call, from 0.001 to 86400")
      ->check(CLI::Range(0.001, 86400.0))
      ->type_name(kSeconds)
      ->capture_default_str();
  auto* const ca = app.add_option("--tls-ca", options.tls_ca,
                                  "Certificate of the authority that signed "
                                  "pandod's, PEM; needs the next two");
  auto* const certificate = app.add_option(
      "--tls-certificate", options.tls_certificate, "Our own certificate, PEM");
  auto* const key =
      app.add_option("--tls-key", options.tls_key, "Its private key, PEM");
  for (CLI::Option* file : {ca, certificate, key}) file->type_name(kFile);
  ca->needs(certificate)->needs(key);
  certificate->needs(ca);
  key->needs(ca);
  app.add_option("--token-file", options.token_file,
                 "File with a bearer token that pandod knows")
      ->type_name(kFile);
  app.add_option("-o,--output", options.format,
                 "Format of the answer: " + absl::StrJoin(kFormats, ", "))
      ->check(CLI::IsMember(kFormats))
      ->type_name("FORMAT")
      ->capture_default_str();
  app.add_flag("-y,--yes", options.yes, "Do not ask before changing anything");
}

std::vector<std::string> VerbsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) {
    names.push_back(verb->get_name());
  }
  return names;
}

CLI::App* AddVerb(CLI::App& app, const Verb& verb, Command& command) {
  CLI::App* const added = app.add_subcommand(verb.name, verb.help);
  verb.add_flags(*added, command.options);
  added->footer(verb.examples);
  // CLI11 calls this after the callbacks of the verbs below it.
  added->callback([added, &command, &verb] {
    if (added->get_subcommands().empty()) command.verb = verb.run;
  });
  return added;
}

// Prints what is wrong, or the help that was asked for.
int Exit(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  const bool is_verb_unknown =
      dynamic_cast<const CLI::RequiredError*>(&error) &&
      app.get_subcommands().empty() && !unknown.empty() && unknown[0][0] != '-';
  if (!is_verb_unknown) return app.exit(error);
  // CLI11 says only that a verb is required.
  return app.exit(CLI::ParseError(UnknownName("verb", unknown[0], VerbsOf(app)),
                                  error.get_exit_code()));
}

}  // namespace

std::optional<Command> ParseCommandLine(int argc, const char* const* argv,
                                        int* exit_code) {
  Command command;
  CLI::App app(
      "Shows what the cache of a pandod holds and why, and changes it on "
      "request.",
      "pandoctl");
  app.formatter(std::make_shared<HelpFormatter>());
  AddCommonFlags(app, command.options);
  app.require_subcommand(1);
  app.fallthrough();
  for (const Verb& verb : kVerbs) {
    CLI::App* const added = AddVerb(app, verb, command);
    if (verb.run != Fleet) continue;
    for (const Verb& part : kFleetVerbs) AddVerb(*added, part, command);
  }
  std::string shell;
  CLI::App* const completion = app.add_subcommand(
      "completion", "Print a script for completion in a shell");
  completion->footer("  source <(pandoctl completion bash)");
  completion->add_option("SHELL", shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember(kShells));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = Exit(app, error) == 0 ? kOk : kUsage;
    return std::nullopt;
  }
  if (shell.empty()) return command;
  const Choices choices = {{"-o|--output", kFormats},
                           {"policy", kPolicies},
                           {"completion", kShells}};
  std::fputs(CompletionScript(app, choices, shell).c_str(), stdout);
  *exit_code = kOk;
  return std::nullopt;
}

}  // namespace pando::ctl
