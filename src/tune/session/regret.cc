// SPDX-License-Identifier: Apache-2.0
#include "tune/session/regret.h"

#include "cache/entry/bucket_regret.h"
#include "tune/records/prior_runs.h"
#include "tune/records/recordings.h"
#include "tune/session/session.h"
#include "tune/space/build.h"

#include <optional>

namespace purlin::tune {
namespace {

bool stopped(const RegretOptions& options) {
  return options.stop != nullptr && options.stop->load();
}

// The winner's time over the best time at one shape. nullopt, with a warning, when a time is
// missing.
Result<std::optional<double>> regret_at(const KernelSpec& spec, const ProblemShape& problem,
                                        const ProblemShape& measured,
                                        const std::vector<Evaluation>& known, const Config& winner,
                                        const RegretOptions& options, Log& log) {
  measure::WorkerSetup setup;
  setup.device = options.device;
  setup.spec_path = spec.file;
  setup.problem = problem;
  setup.binary_cache = options.binary_cache;
  PURLIN_ASSIGN(const std::unique_ptr<WorkerPool> pool, WorkerPool::start(setup, options.pool));
  PURLIN_ASSIGN(const Space space, build_space(spec, problem, pool->device(), {},
                                               [&options](double) { return !stopped(options); }));
  gpu::Recording recording = recording_of(known, pool->device());
  recording.kernel = spec.name;
  recording.problem = measured;
  PriorReader reader(space, pool->device(), problem);
  reader.add(recording, "the bucket's own session");
  PURLIN_ASSIGN(const std::unique_ptr<Strategy> strategy,
                make_strategy("auto", {space, options.seed, options.budget.evaluations,
                                       options.budget.seconds, reader.take().runs}));
  SessionOptions session;
  session.budget = options.budget;
  session.policy = options.policy;
  session.finals.rounds = options.finals;
  session.default_config = winner;  // measured first, and against the fastest in the finals
  session.stop = options.stop;
  PURLIN_ASSIGN(const SessionResult result, run_session(space, *strategy, *pool, nullptr, session));
  if (!result.verdict || !result.verdict->fallback) {
    log.warn("{}: no regret: {}", problem.text(),
             result.default_problem.empty() ? "no config worked" : result.default_problem);
    return std::optional<double>();
  }
  const Finalist& bucket = result.verdict->finalists[*result.verdict->fallback];
  const double best = result.verdict->best().time_ms;
  if (!bucket.problem.empty() || !(best > 0)) {
    log.warn("{}: no regret: the bucket's config failed: {}", problem.text(), bucket.problem);
    return std::optional<double>();
  }
  // A config that ties with the best is the winner there, so the ratio is never below 1.
  return std::optional<double>(std::max(1.0, bucket.time_ms / best));
}

}  // namespace

Status measure_regret(const KernelSpec& spec, const std::vector<Evaluation>& known,
                      const RegretOptions& options, Log& log, cache::Entry& entry) {
  const std::vector<ProblemShape> shapes =
      cache::regret_shapes(entry, options.shapes, options.seed);
  if (shapes.empty())
    log.info("the bucket {} has no other shape at which its config is valid: no regret to measure",
             entry.key.bucket);
  for (const ProblemShape& shape : shapes) {
    if (stopped(options)) break;
    PURLIN_ASSIGN(const std::optional<double> regret,
                  regret_at(spec, shape, entry.problem, known, entry.config, options, log));
    if (!regret) continue;
    log.info("{}: the bucket's config takes {:.2f} times this shape's best", shape.text(), *regret);
    entry.bucket_regret.emplace_back(shape, *regret);
  }
  if (const std::string advice = cache::bucket_advice(entry); !advice.empty())
    log.warn("{}", advice);
  return Status::ok();
}

}  // namespace purlin::tune
