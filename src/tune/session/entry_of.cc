// SPDX-License-Identifier: Apache-2.0
#include "tune/session/entry_of.h"

#include <algorithm>

namespace purlin::tune {
namespace {

// An entry keeps at most so many, evenly chosen: cache/entry/ refuses far more.
constexpr std::size_t kMaxKept = 10'000;

std::vector<Sample> kept_samples(const std::vector<Sample>& all) {
  std::vector<Sample> kept;
  const std::size_t count = std::min(all.size(), kMaxKept);
  kept.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Sample& sample = all[i * all.size() / count];
    if (sample.ms == 0 || is_time_ms(sample.ms)) kept.push_back(sample);
  }
  return kept;
}

}  // namespace

Result<cache::Entry> entry_of(const SessionResult& result, const EntrySubject& subject,
                              std::string_view strategy, bool verified) {
  if (!result.verdict)
    return error(Code::kNotFound, "no config worked; there is no winner to store");
  const Verdicts& verdict = *result.verdict;
  PURLIN_ASSIGN(cache::Entry entry, cache::new_entry(subject.spec, subject.problem, subject.device,
                                                     subject.cold_cache));
  entry.config = result.evaluations[verdict.best().evaluation].config;
  entry.time_ms = verdict.best().time_ms;
  entry.samples = kept_samples(verdict.best().samples);
  if (verdict.fallback) {
    const Finalist& fallback = verdict.finalists[*verdict.fallback];
    entry.default_time_ms = fallback.time_ms;
    entry.default_config = result.evaluations[fallback.evaluation].config;
  }
  for (std::size_t i = 0; i < verdict.finalists.size(); ++i) {
    const Finalist& other = verdict.finalists[i];
    if (i == verdict.winner || !other.problem.empty()) continue;
    if (entry.runner_up_ms <= 0 || other.time_ms < entry.runner_up_ms) {
      entry.runner_up_ms = other.time_ms;
      entry.runner_up = result.evaluations[other.evaluation].config;
    }
  }
  for (const std::size_t tie : verdict.ties)
    entry.ties.push_back(result.evaluations[verdict.finalists[tie].evaluation].config);
  // Times of another state of the machine would be compared with those of this one, and a time that
  // is chance with the next one.
  if (verdict.machine_change != 1 || !verdict.best().is_known()) {
    entry.time_ms = entry.default_time_ms = entry.runner_up_ms = 0;
    entry.samples.clear();
  }
  entry.evaluations = static_cast<int>(result.evaluations.size());
  entry.verified = verified;
  if (verified && subject.spec.reference.is_default_config) entry.reference = "default";
  entry.strategy = strategy;
  return entry;
}

}  // namespace purlin::tune
