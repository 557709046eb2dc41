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

// "" where the finals say that `kept` has to give way.
std::string why_kept(const cache::Entry& kept, const cache::Entry& winner,
                     const SessionResult& result) {
  if (kept.verified && !winner.verified)
    return "its outputs were verified, and those of the winner were not";
  if (kept.problem != winner.problem) return "it was measured at another problem";
  if (result.verdict && lost_to_winner(kept.config, result)) return "";
  return winner.time_ms > 0 ? "it is faster" : "its time is known";
}

}  // namespace

std::vector<std::string> StoredWinner::notes() const {
  std::vector<std::string> lines;
  for (const std::string& record : displaced)
    lines.push_back(fmt::format(
        "the entry {} is no longer in use: its config lost to the winner in the finals", record));
  if (put.served) return lines;
  if (put.kept.empty())
    lines.push_back(
        "no entry of this key is in use: this one was withdrawn before; `purlin cache put "
        "--replace` would put it back");
  else
    lines.push_back(fmt::format(
        "another entry of this key stays in use ({}): {}; `purlin cache put --replace` would "
        "displace it",
        put.kept, kept_why));
  return lines;
}

Result<StoredWinner> store_winner(cache::Store& store, const cache::Entry& entry,
                                  const SessionResult& result) {
  StoredWinner stored;
  PURLIN_ASSIGN(stored.put, store.put(entry));
  // An entry that was withdrawn before does not come into use, even if another gives way.
  if (!stored.put.served && !store.record_set().served(cache::Id128::parse(stored.put.record))) {
    stored.kept_why = "this one was withdrawn before";
    return stored;
  }
  // One at a time: of what is better by its time, only what the finals judged is withdrawn.
  while (!stored.put.served && !stored.put.kept.empty()) {
    const std::string in_use = stored.put.kept;
    const std::optional<cache::Entry> kept = find_record(store, entry.key, in_use);
    stored.kept_why = kept ? why_kept(*kept, entry, result) : "it cannot be read";
    if (!stored.kept_why.empty()) break;
    PURLIN_TRY(store.set_status(
        cache::new_status(in_use, cache::EntryState::kDemoted,
                          fmt::format("replaced by {}: it lost to {} in the same finals",
                                      stored.put.record, entry.config.text()))));
    PURLIN_ASSIGN(stored.put, store.put(entry));
    if (stored.put.kept == in_use) break;  // somebody has put it back
    stored.displaced.push_back(in_use);
  }
  return stored;
}

}  // namespace purlin::tune
