#include "service/options/option_printing.h"

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "service/options/option_table.h"

namespace pando {
namespace {

// Returns a text like "4.0 GiB", in the largest unit in which the number does
// not read 0.0.
std::string Readable(uint64_t bytes) {
  constexpr double kLeastShown = 0.05;
  double size = static_cast<double>(bytes) / (1 << 30);
  const char* unit = "GiB";
  for (const char* smaller : {"MiB", "KiB"}) {
    if (size >= kLeastShown) break;
    size *= 1024;
    unit = smaller;
  }
  return absl::StrFormat("%.1f %s", size, unit);
}

std::string BlockSummary(const Options& options) {
  if (options.chooses_memory) {
    return "blocks in a quarter of the free memory (memory sets its size)";
  }
  return absl::StrFormat("blocks in %u bytes (%s)", options.memory,
                         Readable(options.memory));
}

std::string PoolSummary(const Options& options) {
  if (options.is_open) {
    return absl::StrFormat(
        "an open pool with shards of %u bytes (%s); the first engine that "
        "attaches says the layout of its pages",
        options.pool_bytes, Readable(options.pool_bytes));
  }
  const KvLayout layout =
      MakeKvLayout(ShapeOf(options), options.pool_pages).value();
  const std::string pages =
      absl::StrFormat("pages of %u tokens and %u bytes", options.page_tokens,
                      PageBytes(layout));
  const std::string shards =
      options.pool_memory == "host"
          ? absl::StrFormat("on each of %u shard(s)", options.pool_shards)
          : absl::StrCat("on each of the GPUs ",
                         absl::StrJoin(options.pool_devices, ", "));
  if (options.pool_fraction > 0) {
    return absl::StrFormat("%s, in %g of the free memory %s", pages,
                           options.pool_fraction, shards);
  }
  const uint64_t bytes = PoolBytes(layout, options.pool_pages);
  return absl::StrFormat("%u %s, %u bytes (%s) %s", options.pool_pages, pages,
                         bytes, Readable(bytes), shards);
}

void AppendQuotas(const std::vector<QuotaClass>& quotas, YAML::Emitter& out) {
  out << YAML::BeginSeq;
  for (const QuotaClass& quota : quotas) {
    out << YAML::BeginMap;
    out << YAML::Key << "class" << YAML::Value << quota.name;
    out << YAML::Key << "extra_key" << YAML::Value << quota.pattern;
    out << YAML::Key << "floor_pages" << YAML::Value << quota.floor_pages;
    if (quota.cap_pages.has_value()) {
      out << YAML::Key << "cap_pages" << YAML::Value << *quota.cap_pages;
    }
    if (quota.max_retention_seconds > 0) {
      out << YAML::Key << "max_retention_seconds" << YAML::Value
          << quota.max_retention_seconds;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

void AppendBlockQuotas(const std::vector<BlockQuota>& quotas,
                       YAML::Emitter& out) {
  out << YAML::BeginSeq;
  for (const BlockQuota& quota : quotas) {
    out << YAML::BeginMap;
    out << YAML::Key << "name" << YAML::Value << quota.name;
    out << YAML::Key << "label" << YAML::Value << quota.label;
    out << YAML::Key << "floor" << YAML::Value << quota.floor_bytes;
    if (quota.cap_bytes.has_value()) {
      out << YAML::Key << "cap" << YAML::Value << *quota.cap_bytes;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

void AppendNamespaces(const std::vector<NamespacePattern>& namespaces,
                      YAML::Emitter& out) {
  out << YAML::Key << "namespaces" << YAML::Value << YAML::BeginSeq;
  for (const NamespacePattern& pattern : namespaces) {
    out << YAML::BeginMap;
    out << YAML::Key << "extra_key" << YAML::Value << pattern.extra_key;
    out << YAML::Key << "cache_salt" << YAML::Value << pattern.cache_salt;
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

void AppendCredentials(const std::vector<Credential>& credentials,
                       YAML::Emitter& out) {
  out << YAML::BeginSeq;
  for (const Credential& credential : credentials) {
    out << YAML::BeginMap;
    out << YAML::Key << "name" << YAML::Value << credential.name;
    out << YAML::Key << "role" << YAML::Value
        << std::string(RoleName(credential.role));
    if (credential.uid.has_value()) {
      out << YAML::Key << "uid" << YAML::Value << *credential.uid;
    } else if (!credential.token_file.empty()) {
      out << YAML::Key << "token_file" << YAML::Value << credential.token_file;
    } else {
      out << YAML::Key << "certificate_name" << YAML::Value
          << credential.certificate_name;
    }
    if (!credential.namespaces.empty()) {
      AppendNamespaces(credential.namespaces, out);
    }
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

}  // namespace

std::string Summary(const Options& options) {
  std::string summary = "config ok: ";
  if (options.has_pool) absl::StrAppend(&summary, PoolSummary(options), "\n");
  if (options.memory > 0 || options.chooses_memory) {
    absl::StrAppend(&summary, BlockSummary(options), "\n");
  }
  absl::StrAppendFormat(
      &summary, "eviction policy %s, ",
      std::string(EvictionPolicyName(options.eviction_policy)));
  if (options.low_free_pages == 0) {
    absl::StrAppend(&summary, "no pages kept free\n");
  } else {
    absl::StrAppendFormat(&summary,
                          "with less than %u pages free until %u are\n",
                          options.low_free_pages, options.high_free_pages);
  }
  for (const QuotaClass& quota : options.quotas) {
    absl::StrAppendFormat(
        &summary, "quota class %s, extra_key %s: floor of %u pages, %s\n",
        quota.name, quota.pattern, quota.floor_pages,
        quota.cap_pages.has_value()
            ? absl::StrFormat("cap of %u pages", *quota.cap_pages)
            : "no cap");
  }
  for (const BlockQuota& quota : options.block_quotas) {
    const auto text = [](const char* limit, uint64_t bytes) {
      return absl::StrCat(limit, " of ", Readable(bytes));
    };
    absl::StrAppendFormat(
        &summary, "block quota %s, label %s: %s, %s\n", quota.name, quota.label,
        quota.floor_bytes > 0 ? text("floor", quota.floor_bytes) : "no floor",
        quota.cap_bytes.has_value() ? text("cap", *quota.cap_bytes) : "no cap");
  }
  for (const Credential& credential : options.credentials) {
    absl::StrAppendFormat(&summary, "credential %s, role %s, %s namespaces\n",
                          credential.name,
                          std::string(RoleName(credential.role)),
                          credential.namespaces.empty() ? "all" : "some");
  }
  return summary;
}

std::string ConfigFile(
    const Options& options,
    const std::function<std::string(const std::string& name)>& source_of) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  for (const OptionSpec& spec : OptionTable()) {
    if (!IsInEffect(spec, options)) continue;
    out << YAML::Key << spec.name << YAML::Value << spec.get(options)
        << YAML::Comment(source_of(spec.name));
  }
  out << YAML::Key << "quotas" << YAML::Comment(source_of("quotas"))
      << YAML::Value;
  AppendQuotas(options.quotas, out);
  if (!options.block_quotas.empty()) {
    out << YAML::Key << "block_quotas"
        << YAML::Comment(source_of("block_quotas")) << YAML::Value;
    AppendBlockQuotas(options.block_quotas, out);
  }
  // A configuration file must not hold an empty list of credentials.
  if (!options.credentials.empty()) {
    out << YAML::Key << "credentials" << YAML::Comment(source_of("credentials"))
        << YAML::Value;
    AppendCredentials(options.credentials, out);
  }
  out << YAML::EndMap;
  return absl::StrCat(out.c_str(), "\n");
}

std::string OptionCatalogueJson() {
  const Options defaults;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const OptionSpec& spec : OptionTable()) {
    list.push_back({{"name", spec.name},
                    {"environment", EnvironmentName(spec.name)},
                    {"value", spec.value_name},
                    {"default", spec.get(defaults)},
                    {"live", spec.is_live},
                    {"help", spec.help}});
  }
  return list.dump(2) + "\n";
}

}  // namespace pando
