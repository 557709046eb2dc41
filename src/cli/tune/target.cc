// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/target.h"

#include "base/text.h"
#include "cache/entry/bucket_regret.h"
#include "cli/frame/command.h"
#include "tune/session/subject.h"

namespace purlin::cli {
namespace {

constexpr std::size_t kMaxNamesBytes = 600;  // of lost records in one warning

}  // namespace

void CacheFlag::declare(Flags& flags) {
  flags.option("--cache", directory, "Config cache (default: $PURLIN_CACHE or the user's)", "DIR");
}

Result<cache::Store> CacheFlag::open() const {
  return cache::Store::open(directory.empty() ? cache::Store::default_directory() : directory);
}

Result<cache::Store> CacheFlag::open_examined(Log& log) const {
  PURLIN_ASSIGN(cache::Store store, open());
  PURLIN_TRY(store.examine());
  warn_of_damage(store, log);
  return store;
}

void CacheFlag::declare_layers(Flags& flags) {
  flags.option("--cache-layers", below, "Caches below it, such as the node's and the fleet's",
               "DIR:DIR");
}

Result<cache::Layers> CacheFlag::open_layers() const {
  std::vector<std::string> directories;
  for (const std::string& part : split(below, ':'))
    if (!part.empty()) directories.push_back(part);
  return cache::Layers::open(directory.empty() ? cache::Store::default_directory() : directory,
                             directories.empty() ? cache::Layers::default_below() : directories);
}

void CacheTargetFlags::declare(Flags& flags, bool spec_required) {
  flags.positional("SPEC", spec, "Spec of the kernel (TOML)", spec_required);
  flags.option("--shape", shape, "Problem shape: M=512,N=512 or the name of a preset", "SHAPE");
  flags.option("--device", device, "Device: cuda:0, opencl:0, replay:FILE or auto", "DEVICE");
  flags.flag("--cold", cold, "Use the entry measured with a cold L2 cache");
  cache.declare(flags);
}

Result<CacheTarget> CacheTargetFlags::resolve() const {
  CacheTarget target;
  PURLIN_ASSIGN(target.spec, load_spec(spec));
  PURLIN_ASSIGN(target.problem, resolve_shape(target.spec, shape));
  PURLIN_ASSIGN(target.device, tune::device_for_spec(target.spec, device));
  return target;
}

Environment environment_of(const DeviceInfo& device) {
  Environment environment = host_environment();
  environment.devices.push_back(device);
  return environment;
}

std::string describe(const cache::Entry& entry, const Terminal& terminal) {
  std::string text =
      fmt::format("  config      {}\n", terminal.paint(Style::kBold, entry.config.text()));
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<11} {}\n", name, value);
  };
  std::string time = entry.time_ms > 0 ? format_ns(entry.time_ms * 1e6) : "not measured";
  if (entry.time_ms > 0 && entry.default_time_ms > 0)
    time +=
        fmt::format(", {:.2f} times the default's speed", entry.default_time_ms / entry.time_ms);
  line("time", time);
  line("measured at", entry.problem.text());
  line("bucket", entry.key.bucket);
  line("layout", entry.key.layout);
  std::string regret;
  for (const auto& [shape, ratio] : entry.bucket_regret)
    regret += fmt::format("{}{:.2f} at {}", regret.empty() ? "" : ", ", ratio, shape.text());
  line("regret", regret);
  line("advice", cache::bucket_advice(entry));
  std::vector<std::string> facts;  // the processor has no arch
  for (const std::string& fact :
       {entry.key.arch, entry.key.driver.empty() ? "" : "driver " + entry.key.driver,
        entry.key.toolkit})
    if (!fact.empty()) facts.push_back(fact);
  line("device", facts.empty() ? entry.key.device
                               : fmt::format("{} ({})", entry.key.device, join(facts, ", ")));
  line("outputs", !entry.verified                ? "not verified"
                  : entry.reference == "default" ? "verified against the default config"
                                                 : "verified against the reference");
  std::string found = entry.strategy;
  if (entry.evaluations > 0 || !found.empty())
    found += fmt::format("{}{} {}", found.empty() ? "" : ", ", entry.evaluations,
                         noun_for(entry.evaluations, "evaluation"));
  line("found by", found);
  std::string recorded = entry.recorded_at;
  if (const std::string who = cache::author_text(entry.user, entry.host); !who.empty())
    recorded += (recorded.empty() ? "by " : " by ") + who;
  line("recorded", recorded);
  return text;
}

void warn_of_damage(const cache::Store& store, Log& log) {
  if (store.damaged() > 0) {
    std::string names;
    for (const cache::LostRecord& lost : store.lost()) {
      if (names.size() > kMaxNamesBytes) {
        names += ", …";
        break;
      }
      names += fmt::format("{} {} at byte {}", names.empty() ? ":" : ",", lost.record, lost.offset);
    }
    log.warn(
        "{} damaged record(s) in '{}' were skipped{}; get them back with: purlin cache repair "
        "--cache '{}' --cache-layers DIR, or purlin cache pull",
        store.damaged(), store.directory(), names, store.directory());
  }
  if (store.newer() > 0)
    log.warn("{} record(s) of a newer Purlin in '{}' were skipped", store.newer(),
             store.directory());
}

void report_damage(const cache::Store& store, Json* document) {
  document->set("damaged_records", store.damaged());
  Json lost = Json::array();
  for (const cache::LostRecord& record : store.lost())
    lost.push(Json::object({{"record", record.record}, {"offset", record.offset}}));
  document->set("lost_records", std::move(lost));
  document->set("partial", store.damaged() > 0);
}

int partial_exit(const cache::Store& store) {
  return store.damaged() > 0 ? kExitInconclusive : kExitOk;
}

}  // namespace purlin::cli
