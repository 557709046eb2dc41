// SPDX-License-Identifier: Apache-2.0
#include "tune/session/entry_of.h"

namespace purlin::tune {

Result<cache::Entry> entry_of(const SessionResult& result, const EntrySubject& subject,
                              std::string_view strategy, bool verified) {
  if (!result.verdict)
    return error(Code::kNotFound, "no config worked; there is no winner to store");
  const Verdicts& verdict = *result.verdict;
  PURLIN_ASSIGN(cache::Entry entry, cache::new_entry(subject.spec, subject.problem, subject.device,
                                                     subject.cold_cache));
  entry.config = result.evaluations[verdict.best().evaluation].config;
  entry.time_ms = verdict.best().time_ms;
  entry.samples = verdict.best().samples;
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
  entry.evaluations = static_cast<int>(result.evaluations.size());
  entry.verified = verified;
  entry.strategy = strategy;
  return entry;
}

}  // namespace purlin::tune
