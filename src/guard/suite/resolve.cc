// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/resolve.h"

#include "base/files.h"
#include "cache/store/store.h"
#include "gpu/library_kernel.h"
#include "model/spec/spec.h"

namespace purlin::guard {
namespace {

Result<Config> cached_config(const KernelSpec& spec, const ProblemShape& problem,
                             const SuiteItem& item, const Suite& suite, const DeviceInfo& device,
                             const std::string& cache) {
  PURLIN_ASSIGN(const DeviceInfo facts, gpu::device_for(spec.library, device));
  PURLIN_ASSIGN(const cache::CacheKey key,
                cache::make_key(spec, problem, facts, suite.policy.flush_l2));
  PURLIN_ASSIGN(const cache::Store store, cache::Store::open(cache));
  const cache::Lookup lookup = store.get(key, problem);
  if (lookup.entry) return lookup.entry->config;
  return error(Code::kNotFound,
               "{}: the cache '{}' has no winner for {} {} on {}; run `purlin tune {} --shape {}`, "
               "or give the item a config",
               item.where, cache, spec.name, problem.text(), device.name, item.spec_path,
               problem.text());
}

// An explicit assignment: each of its parameters exists, and the others keep their default.
Result<Config> assigned_config(const KernelSpec& spec, const SuiteItem& item) {
  PURLIN_ASSIGN(const Config given, parse_config(item.config));
  Config config = default_config(spec);
  for (const auto& [name, value] : given.items()) {
    if (config.find(name) == nullptr)
      return error(Code::kInvalid, "{}: '{}' has no parameter '{}'", item.where, spec.name, name);
    config.set(name, value);
  }
  return config;
}

}  // namespace

Item name_of(const SuiteItem& item) {
  Item name{base_name(parent_path(item.spec_path)), item.shape, item.config};
  const Result<KernelSpec> spec = load_spec(item.spec_path);
  if (!spec.is_ok()) return name;
  name.kernel = spec->name;
  if (const auto problem = resolve_shape(*spec, item.shape); problem.is_ok())
    name.shape = problem->text();
  return name;
}

Result<ResolvedItem> resolve_item(const SuiteItem& item, const Suite& suite,
                                  const DeviceInfo& device, const std::string& cache,
                                  const Baseline* fallback) {
  PURLIN_ASSIGN(const KernelSpec spec, load_spec(item.spec_path));
  ResolvedItem resolved;
  resolved.request = item.config;
  resolved.thresholds = item.thresholds;
  resolved.op = spec.op;
  resolved.seed = spec.seed + suite.seed;
  resolved.target.kernel = spec.name;
  resolved.target.spec_path = item.spec_path;
  Result<ProblemShape> problem = resolve_shape(spec, item.shape);
  if (!problem.is_ok()) return problem.status().with_context(item.where);
  resolved.target.problem = *problem;
  PURLIN_ASSIGN(resolved.snapshot, take_snapshot(spec));

  if (spec.library && item.config != "cached")
    return error(Code::kInvalid,
                 "{}: the configs of {} are a library's; a suite takes its cached winner",
                 item.where, spec.name);
  if (item.config == "default") {
    resolved.target.config = default_config(spec);
  } else if (item.config == "cached") {
    Result<Config> config = cached_config(spec, *problem, item, suite, device, cache);
    const BaselineItem* recorded = fallback == nullptr ? nullptr : fallback->find(resolved.key());
    if (config.is_ok()) {
      resolved.target.config = *config;
    } else if (recorded != nullptr && config.status().code() == Code::kNotFound) {
      resolved.target.config = recorded->config;
      resolved.note =
          "the cache has no winner for the current kernel; "
          "measured with the baseline's config";
    } else {
      return config.status();
    }
  } else {
    PURLIN_ASSIGN(resolved.target.config, assigned_config(spec, item));
  }
  return resolved;
}

}  // namespace purlin::guard
