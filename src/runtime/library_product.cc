// SPDX-License-Identifier: Apache-2.0
#include "runtime/library_product.h"

#include "base/files.h"
#include "base/text.h"

#include <cstring>

namespace purlin::runtime {
namespace {

constexpr std::size_t kMaxPlans = 4096;  // at the limit all plans are dropped

std::vector<std::string> dimensions_of(const LibraryOperation& operation) {
  std::vector<std::string> names = {"M", "N", "K"};
  if (operation.batched) names.emplace_back("BATCH");
  return names;
}

// What the work list names, written once; "" where it cannot be.
std::string spec_beside(const CacheSession& session, const LibraryOperation& operation) {
  if (!session.settings().record || session.settings().disabled) return "";
  const std::string folder = join_path(session.directory(), "specs");
  const std::string path = join_path(
      folder, fmt::format("{}-{}m.toml", operation.label(), operation.workspace_bytes >> 20));
  if (file_exists(path)) return path;
  std::string text = fmt::format(
      "# Written by libpurlin: a product that a program asked for (docs/formats/spec.md).\n"
      "schema = \"purlin.spec/1\"\n[problem]\nM = 128\nN = 128\nK = 128\n{}[library]\nname = "
      "\"{}\"\n"
      "a = \"{}\"\nb = \"{}\"\nd = \"{}\"\ntranspose_a = {}\ntranspose_b = {}\nbatched = {}\n"
      "compute = \"{}\"\nepilogue = \"{}\"\nworkspace_mib = {}\n",
      operation.batched ? "BATCH = 1\n" : "", operation.library, name_of(operation.a),
      name_of(operation.b), name_of(operation.d), operation.transpose_a, operation.transpose_b,
      operation.batched, operation.compute, operation.epilogue, operation.workspace_bytes >> 20);
  const bool written = make_directories_durably(folder).is_ok() && write_atomic(path, text).is_ok();
  return written ? path : "";
}

OpOptions options_of(const CacheSession& session, const gpu::LibraryAppContext& app_context,
                     const LibraryProduct::Setup& setup) {
  OpOptions options;
  options.wanted = setup.device;
  options.wanted.op = "gemm";
  options.wanted.kernel = setup.operation.label();
  options.wanted.dtype = "";
  options.wanted.source_hash = "";  // the workspace is asked of each algorithm
  options.wanted.toolkit = app_context.version();
  if (setup.any_driver) options.wanted.driver = "";
  options.dimensions = dimensions_of(setup.operation);
  options.spec = spec_beside(session, setup.operation);
  for (const std::string& name : options.dimensions)
    options.rules.emplace_back(name, cache::BucketRule{});
  return options;
}

}  // namespace

LibraryProduct::LibraryProduct(const std::shared_ptr<CacheSession>& session,
                               std::unique_ptr<gpu::LibraryAppContext> app_context,
                               const Setup& setup)
    : operation_(setup.operation),
      app_context_(std::move(app_context)),
      session_(session),
      op_(session, options_of(*session, *app_context_, setup)) {}

ProblemShape LibraryProduct::shape_of(const std::int64_t* extents) const {
  ProblemShape problem;
  for (std::size_t i = 0; i < op_.dimensions().size(); ++i)
    problem.set(op_.dimensions()[i], extents[i]);
  return problem;
}

void LibraryProduct::say_refused(const std::int64_t* extents, const Status& why) {
  session_->log().warn("{} {}: the stored algorithm is not used: {}", operation_.label(),
                       shape_of(extents).text(), why.message());
}

cache::Extents LibraryProduct::key_of(const std::int64_t* extents) const {
  cache::Extents key{};
  std::copy_n(extents, op_.dimensions().size(), key.begin());
  return key;
}

std::shared_ptr<gpu::LibraryPlan> LibraryProduct::planned_before(const std::int64_t* extents,
                                                                 const cache::IndexedEntry* entry) {
  const std::shared_lock lock(mutex_);
  const auto found = plans_.find(key_of(extents));
  return found != plans_.end() && found->second.entry == entry ? found->second.tuned : nullptr;
}

LibraryProduct::Planned LibraryProduct::planned(const std::int64_t* extents,
                                                const cache::IndexedEntry* entry, bool heuristic) {
  const cache::Extents key = key_of(extents);
  const auto is_complete = [&](const Planned& plan) {
    return (entry == nullptr || plan.entry == entry) &&
           (!heuristic || plan.heuristic != nullptr || !plan.no_heuristic.is_ok());
  };
  {
    const std::shared_lock lock(mutex_);
    const auto found = plans_.find(key);
    if (found != plans_.end() && is_complete(found->second)) return found->second;
  }
  const std::unique_lock lock(mutex_);
  if (plans_.size() >= kMaxPlans) plans_.clear();
  Planned& plan = plans_[key];
  if (entry != nullptr && plan.entry != entry) {
    plan.entry = entry;
    plan.tuned.reset();
    plan.refused = Status::ok();
    auto made = app_context_->plan(operation_, shape_of(extents), &entry->config);
    if (made.is_ok()) {
      plan.tuned = std::move(made).value();
    } else {
      plan.refused = made.status();
      say_refused(extents, plan.refused);
    }
  }
  if (heuristic && plan.heuristic == nullptr && plan.no_heuristic.is_ok()) {
    auto made = app_context_->plan(operation_, shape_of(extents), nullptr);
    if (made.is_ok())
      plan.heuristic = std::move(made).value();
    else
      plan.no_heuristic = made.status();
  }
  return plan;
}

LibraryProduct::Found LibraryProduct::algorithm(const std::int64_t* extents,
                                                const gpu::LibraryDescriptors* descriptors,
                                                void* out) {
  Found found;
  const cache::OpIndex::Hit hit = op_.find(extents);
  if (hit.entry == nullptr) return found;
  if (descriptors != nullptr) {
    const Result<std::size_t> bytes =
        app_context_->algorithm(operation_, *descriptors, hit.entry->config, out);
    if (!bytes.is_ok()) {
      found.refused = bytes.status();
      return found;
    }
    found.workspace_bytes = *bytes;
  } else {
    const Planned plan = planned(extents, hit.entry, false);
    found.refused = plan.refused;
    if (plan.tuned == nullptr) return found;
    std::memcpy(out, plan.tuned->algorithm(), app_context_->algorithm_bytes());
    found.workspace_bytes = plan.tuned->workspace_bytes();
  }
  found.outcome = hit.outcome;
  return found;
}

Result<std::shared_ptr<gpu::LibraryPlan>> LibraryProduct::plan(const std::int64_t* extents,
                                                               Fallback fallback,
                                                               cache::Outcome* outcome) {
  *outcome = cache::Outcome::kMiss;
  if (fallback != Fallback::kAlwaysHeuristic) {
    const cache::OpIndex::Hit hit = op_.find(extents);
    if (hit.entry != nullptr) {
      std::shared_ptr<gpu::LibraryPlan> tuned = planned_before(extents, hit.entry);
      if (tuned == nullptr) tuned = planned(extents, hit.entry, false).tuned;
      if (tuned != nullptr) {
        *outcome = hit.outcome;
        return tuned;
      }
    }
    if (fallback == Fallback::kNone) return std::shared_ptr<gpu::LibraryPlan>();
  }
  const Planned plan = planned(extents, nullptr, true);
  if (plan.heuristic == nullptr) return plan.no_heuristic;
  return plan.heuristic;
}

}  // namespace purlin::runtime
