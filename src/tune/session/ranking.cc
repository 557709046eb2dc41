// SPDX-License-Identifier: Apache-2.0
#include "tune/session/ranking.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::tune {

std::vector<RankedConfig> ranking(const SessionResult& session, Objective objective) {
  std::vector<RankedConfig> ranked;
  if (!session.verdict) return ranked;
  const Verdicts& verdict = *session.verdict;
  std::vector<bool> in_finals(session.evaluations.size());
  for (std::size_t i = 0; i < verdict.finalists.size(); ++i) {
    const Finalist& finalist = verdict.finalists[i];
    in_finals[finalist.evaluation] = true;
    const bool is_tie =
        std::find(verdict.ties.begin(), verdict.ties.end(), i) != verdict.ties.end();
    if (finalist.problem.empty())
      ranked.push_back({finalist.evaluation, &finalist, finalist.time_ms, finalist.value, is_tie});
  }
  for (std::size_t i = 0; i < session.evaluations.size(); ++i) {
    const Evaluation& searched = session.evaluations[i];
    if (searched.ok() && !in_finals[i])
      ranked.push_back({i, nullptr, searched.time_ms, objective_value(searched, objective)});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](const RankedConfig& a, const RankedConfig& b) {
    const bool first = a.finalist != nullptr, second = b.finalist != nullptr;
    return verdict.rounds > 0 && first != second ? first : a.value < b.value;
  });
  // The winner leads, also where a tie was measured a hair faster.
  const auto winner = std::find_if(ranked.begin(), ranked.end(), [&](const RankedConfig& each) {
    return each.finalist == &verdict.best();
  });
  if (winner != ranked.end()) std::rotate(ranked.begin(), winner, winner + 1);
  return ranked;
}

double worst_over_best(const SessionResult& session) {
  double worst = 0;
  for (const Evaluation& evaluation : session.evaluations)
    if (evaluation.ok()) worst = std::max(worst, evaluation.time_ms);
  const double best = session.evaluations[session.verdict->best().evaluation].time_ms;
  return best > 0 ? std::max(worst / best, 1.0) : 1;
}

std::string claim_text(const Verdicts& verdict) {
  if (!verdict.fallback) return "";
  if (verdict.winner == *verdict.fallback)
    return verdict.finalists.size() > 1 ? "no config is faster than the default beyond noise"
                                        : "the default stays";
  return fmt::format("{:.2f}x faster than the default",
                     verdict.finalists[*verdict.fallback].time_ms / verdict.best().time_ms);
}

}  // namespace purlin::tune
