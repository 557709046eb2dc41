// SPDX-License-Identifier: Apache-2.0
#include "tune/session/store_winner.h"

#include "base/text.h"

#include <optional>

namespace purlin::tune {
namespace {

std::optional<cache::Entry> find_record(const cache::Store& store, const cache::CacheKey& key,
                                        const std::string& record) {
  const Result<std::vector<cache::StoredEntry>> history = store.history(key);
  if (!history.is_ok()) return std::nullopt;
  for (const cache::StoredEntry& stored : *history)
    if (stored.record == record) return stored.entry;
  return std::nullopt;
}

// The finals measure in turns, so the two had the same machine.
bool lost_to_winner(const Config& config, const SessionResult& result) {
  const Verdicts& verdict = *result.verdict;
  if (verdict.rounds == 0) return false;
  const Unsteadiness unsteady = unsteadiness(verdict.finalists);
  for (const Finalist& finalist : verdict.finalists)
    if (finalist.problem.empty() && result.evaluations[finalist.evaluation].config == config)
      return is_apart(verdict.best(), finalist, unsteady);
  return false;
}

}  // namespace

Result<StoredWinner> store_winner(cache::Store& store, const cache::Entry& entry,
                                  const SessionResult& result) {
  StoredWinner stored;
  PURLIN_ASSIGN(stored.put, store.put(entry));
  if (stored.put.served) return stored;
  const std::string in_use = stored.put.kept;
  const std::optional<cache::Entry> kept = find_record(store, entry.key, in_use);
  const bool same_problem = kept && kept->problem == entry.problem;
  if (same_problem && result.verdict && lost_to_winner(kept->config, result)) {
    PURLIN_ASSIGN(stored.put,
                  store.put(entry, {true, fmt::format("it lost to {} in the same finals",
                                                      entry.config.text())}));
    if (stored.put.served) {
      stored.displaced = in_use;
      return stored;
    }
  }
  stored.kept_why = kept && !same_problem ? "it was measured at another problem"
                    : entry.time_ms > 0   ? "it is faster"
                                          : "its time is known";
  return stored;
}

}  // namespace purlin::tune
