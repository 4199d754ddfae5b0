#include "tools/pandoctl/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/pandoctl/completion.h"
#include "tools/pandoctl/exit_code.h"

namespace pando::ctl {
namespace {

const std::vector<std::string> kFormats = {"table", "json", "yaml"};
const std::vector<std::string> kPolicies = {"lru",  "lfu",      "fifo", "mru",
                                            "filo", "priority", "slru"};
const std::vector<std::string> kShells = {"bash", "zsh"};

void NoFlags(CLI::App&, Options&) {}

void RepeatFlags(CLI::App& verb, Options& options) {
  verb.add_option("-i,--interval", options.interval_s, "Seconds between two")
      ->check(CLI::Range(0.01, 86400.0))
      ->capture_default_str();
  verb.add_option("-n,--count", options.count, "End after so many; 0: never")
      ->capture_default_str();
}

void CountFlag(CLI::App& verb, Options& options) {
  verb.add_option("-n,--count", options.count, "End after so many; 0: never")
      ->capture_default_str();
}

void LimitFlag(CLI::App& verb, Options& options) {
  verb.add_option("--limit", options.limit, "List at most so many")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
}

void TreeFlags(CLI::App& verb, Options& options) {
  LimitFlag(verb, options);
  verb.add_option("--namespace", options.namespace_number,
                  "Only this one, by its number");
}

void PromptFlags(CLI::App& verb, Options& options) {
  auto* const tokens = verb.add_option(
      "TOKENS", options.tokens,
      "Token ids; none: a list on stdin, between commas or as JSON");
  verb.add_option("--tokens-file", options.tokens_file, "Read them from a file")
      ->excludes(tokens);
  verb.add_option("--extra-key", options.extra_key, "Of the namespace");
  verb.add_option("--cache-salt-file", options.cache_salt_file,
                  "File with the salt of the namespace");
  verb.add_flag("--bigram", options.bigram, "The namespace is one of pairs");
}

void LockFlags(CLI::App& verb, Options& options) {
  LimitFlag(verb, options);
  verb.add_option("--session", options.session_number,
                  "Only of this one, by its number");
  verb.add_option("--release", options.release_session,
                  "Take all locks from this session");
}

void EvictFlags(CLI::App& verb, Options& options) {
  verb.add_option("PAGES", options.evicted_pages, "How many, at most")
      ->required();
}

void FlushFlags(CLI::App& verb, Options& options) {
  auto* const what = verb.add_option_group("what");
  what->add_option("--namespace", options.namespace_number,
                   "Only this one, by its number");
  what->add_flag("--all", options.all, "All of them");
  what->require_option(1);
}

void PolicyFlags(CLI::App& verb, Options& options) {
  verb.add_option("NAME", options.policy, "Change to this one");
}

void DrainFlags(CLI::App& verb, Options& options) {
  verb.add_flag("--exit", options.exit, "Then end pandod, as SIGTERM does");
  verb.add_flag("--wait", options.wait, "Wait until nothing is held any more");
}

void WatchFlags(CLI::App& verb, Options& options) {
  CountFlag(verb, options);
  verb.add_flag("--snapshot", options.snapshot, "What is cached already first");
}

void HealthFlags(CLI::App& verb, Options& options) {
  verb.add_option("--service", options.service,
                  "readiness, liveness, or a service of gRPC by its name");
  verb.add_flag("--invariants", options.invariants,
                "Verify the whole index, too; holds the cache up meanwhile");
}

void ClientFlags(CLI::App& verb, Options& options) {
  verb.add_option("--clients", options.clients,
                  "Client processes; requests are dealt out in order")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  verb.add_flag("--handles", options.handles,
                "Send only what comes after the end of an earlier request");
}

void ReplayFlags(CLI::App& verb, Options& options) {
  verb.add_option("TRACE", options.trace, "JSON lines, plain or gzipped")
      ->required()
      ->check(CLI::ExistingFile);
  verb.add_option("--requests", options.requests,
                  "Only the first so many; 0: all");
  ClientFlags(verb, options);
}

void BenchFlags(CLI::App& verb, Options& options) {
  constexpr uint32_t kMaxTokens = 1 << 20;
  replay::MadeUpChats& chats = options.chats;
  verb.add_option("--requests", chats.requests, "How many")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  verb.add_option("--prompt-tokens", chats.prompt_tokens, "Of each request")
      ->check(CLI::Range(1u, kMaxTokens))
      ->capture_default_str();
  verb.add_option("--system-prompts", chats.system_prompts,
                  "With how many different ones the prompts begin")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--system-prompt-tokens", chats.system_prompt_tokens,
                  "Of each of these")
      ->check(CLI::Range(0u, kMaxTokens))
      ->capture_default_str();
  ClientFlags(verb, options);
}

struct Verb {
  const char* name;
  const char* help;
  absl::Status (*run)(const Context&);
  void (*add_flags)(CLI::App&, Options&);
};

constexpr Verb kVerbs[] = {
    {"status", "One look at everything", Status, NoFlags},
    {"stat", "A line of rates and states for each interval", Stat, RepeatFlags},
    {"top", "The same and who holds what, live", Top, RepeatFlags},
    {"tree", "The nodes of the radix tree", Tree, TreeFlags},
    {"match", "How much of a prompt is cached", Match, PromptFlags},
    {"explain", "Why a prompt matches no further", Explain, PromptFlags},
    {"namespaces", "What each has cached, the largest first", Namespaces,
     LimitFlag},
    {"sessions", "The attached workers", Sessions, LimitFlag},
    {"locks", "Who holds locks, the oldest first", Locks, LockFlags},
    {"evict", "Evict pages in the order of the policy", Evict, EvictFlags},
    {"flush", "Evict all that is not locked", Flush, FlushFlags},
    {"policy", "Show or change the eviction policy", Policy, PolicyFlags},
    {"drain", "Admit nothing new any more", Drain, DrainFlags},
    {"watch", "What enters and leaves the cache", Watch, WatchFlags},
    {"health", "Whether it serves; exit status 4 if not", Health, HealthFlags},
    {"replay", "Requests of a recorded trace, with their times", Replay,
     ReplayFlags},
    {"bench", "Requests that are made up, with their times", Bench, BenchFlags},
    {"version", "Of pandoctl and of pandod", Version, NoFlags},
};

void AddCommonFlags(CLI::App& app, Options& options) {
  app.add_option("--address", options.address, "unix:/path or host:port")
      ->envname("PANDO_ADDRESS")
      ->capture_default_str();
  app.add_option("--timeout", options.timeout_s, "Seconds for each call")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  auto* const ca = app.add_option("--tls-ca", options.tls_ca,
                                  "File that signs pandod's certificate, PEM");
  auto* const certificate = app.add_option(
      "--tls-certificate", options.tls_certificate, "Our own, PEM");
  auto* const key = app.add_option("--tls-key", options.tls_key, "Its key");
  ca->needs(certificate)->needs(key);
  certificate->needs(ca);
  key->needs(ca);
  app.add_option("--token-file", options.token_file,
                 "File with a bearer token that pandod knows");
  app.add_option("-o,--output", options.format, "Format of the answer")
      ->check(CLI::IsMember(kFormats))
      ->capture_default_str();
  app.add_flag("-y,--yes", options.yes, "Do not ask first");
}

// Prints what is wrong, or the help that was asked for.
int Exit(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  const bool is_verb_unknown =
      dynamic_cast<const CLI::RequiredError*>(&error) &&
      app.get_subcommands().empty() && !unknown.empty() && unknown[0][0] != '-';
  if (!is_verb_unknown) return app.exit(error);
  // CLI11 says only that a verb is required.
  return app.exit(CLI::ParseError("unknown verb '" + unknown[0] + "'",
                                  error.get_exit_code()));
}

}  // namespace

std::optional<Command> ParseCommandLine(int argc, const char* const* argv,
                                        int* exit_code) {
  Command command;
  CLI::App app(
      "Asks a pandod what its cache holds and why, and tells it what "
      "to do.",
      "pandoctl");
  AddCommonFlags(app, command.options);
  app.require_subcommand(1);
  app.fallthrough();
  for (const Verb& verb : kVerbs) {
    CLI::App* const added = app.add_subcommand(verb.name, verb.help);
    verb.add_flags(*added, command.options);
    added->callback([&command, &verb] { command.verb = verb.run; });
  }
  std::string shell;
  app.add_subcommand("completion", "A script that completes commands")
      ->add_option("SHELL", shell, "For which shell")
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
