// SPDX-License-Identifier: Apache-2.0
#include "tune/session/rematch.h"

#include "measure/timing.h"

#include <algorithm>
#include <utility>

namespace purlin::tune {
namespace {

// The fastest, and so many rivals of it at once: a short round is close in time.
constexpr std::size_t kRivals = 4;
// Each failure costs a worker its process. They worked before, so failures are not theirs alone.
constexpr int kMostFailures = 2;
// So few rounds show a rival that is far behind in each of them, and so many one that is slower by
// more than a tie. Fewer than 8 pairs have no interval of 99 %.
constexpr std::size_t kFarRounds = 3, kNearRounds = 8;
constexpr double kOutConfidence = 0.99;

}  // namespace

Rematches::Rematches(const std::vector<Evaluation>& evaluations, const FinalsOptions& options,
                     int most_rounds)
    : evaluations_(evaluations),
      options_(options),
      most_rounds_(static_cast<std::size_t>(std::max(most_rounds, 1))) {}

std::optional<std::size_t> Rematches::next() {
  if (failures_ >= kMostFailures) return std::nullopt;
  if (turns_.empty()) begin_round();
  if (turns_.empty()) return std::nullopt;
  return turns_[turn_].evaluation;
}

void Rematches::begin_round() {
  if (nothing_at_ == evaluations_.size()) return;
  const std::vector<std::size_t> chosen = finalists_of(evaluations_, std::nullopt, options_,
                                                       [this](std::size_t i) { return is_out(i); });
  for (const std::size_t evaluation : chosen) {
    const auto found = records_.find(evaluation);
    const bool full = found != records_.end() && found->second.times_ms.size() >= most_rounds_;
    if (turns_.empty() || !full) turns_.push_back({evaluation});
    if (turns_.size() > kRivals) break;
  }
  if (turns_.size() < 2) {
    turns_.clear();
    nothing_at_ = evaluations_.size();
    return;
  }
  std::rotate(turns_.begin(),
              turns_.begin() + outcome_.rounds % static_cast<std::ptrdiff_t>(turns_.size()),
              turns_.end());
  turn_ = 0;
}

std::optional<RematchRound> Rematches::report(const Evaluation& measured) {
  if (turns_.empty()) return std::nullopt;
  outcome_.seconds += measured.measure_s;
  Turn& turn = turns_[turn_];
  const bool works = measured.ok() && !measured.samples.empty();
  if (measured.ok() && !works && !std::exchange(turn.loaded, true)) return std::nullopt;
  turn.made = Rematch{evaluations_[turn.evaluation].config};
  if (works) {
    turn.made->time_ms = median_ms(measured.samples);
  } else {
    ++failures_;
    turn.made->problem =
        measured.message.empty() ? std::string(status_name(measured.status)) : measured.message;
  }
  if (++turn_ < turns_.size() && failures_ < kMostFailures) return std::nullopt;
  RematchRound round;
  std::vector<std::size_t> evaluations;
  for (Turn& each : turns_) {
    if (!each.made) continue;
    round.push_back(*std::move(each.made));
    evaluations.push_back(each.evaluation);
  }
  turns_.clear();
  take(round, evaluations);
  return round;
}

void Rematches::recall(const RematchRound& round, const std::vector<std::size_t>& evaluations) {
  take(round, evaluations);
}

void Rematches::take(const RematchRound& round, const std::vector<std::size_t>& evaluations) {
  const int number = outcome_.rounds++;
  for (std::size_t i = 0; i < round.size(); ++i) {
    Record& record = records_[evaluations[i]];
    if (round[i].problem.empty())
      record.times_ms[number] = round[i].time_ms;
    else
      record.failed = true;
  }
  judge(evaluations);
  outcome_.configs = records_.size();
  outcome_.out = 0;
  for (const auto& [evaluation, record] : records_) outcome_.out += is_out(evaluation);
}

// Ratios within rounds: drift between rounds is in both times.
std::vector<Sample> Rematches::ratios(std::size_t one, std::size_t other) const {
  std::vector<Sample> all;
  const std::map<int, double>& others = records_.at(other).times_ms;
  for (const auto& [round, ms] : records_.at(one).times_ms)
    if (const auto found = others.find(round); found != others.end() && found->second > 0)
      all.push_back({ms / found->second, 0});
  return all;
}

// All against the one that its rounds show as the fastest, which may be a rival.
void Rematches::judge(const std::vector<std::size_t>& evaluations) {
  const std::size_t first = evaluations.front();
  std::size_t best = first;
  double lowest = 0;
  for (const std::size_t evaluation : evaluations) {
    if (is_out(evaluation)) continue;
    const std::vector<Sample> pairs = ratios(evaluation, first);
    if (pairs.empty()) continue;
    const double ratio = median_ms(pairs);
    if (lowest == 0 || ratio < lowest) lowest = ratio, best = evaluation;
  }
  for (const std::size_t evaluation : evaluations) {
    if (evaluation == best || is_out(evaluation)) continue;
    const std::vector<Sample> pairs = ratios(evaluation, best);
    if (pairs.size() < kFarRounds) continue;
    const measure::Interval interval = measure::median_interval_ms(pairs, kOutConfidence);
    records_[evaluation].slow =
        interval.low > 1 + options_.within ||
        (pairs.size() >= kNearRounds && interval.low > 1 + options_.tie_cap);
  }
}

bool Rematches::is_out(std::size_t evaluation) const {
  const auto found = records_.find(evaluation);
  return found != records_.end() && (found->second.failed || found->second.slow);
}

}  // namespace purlin::tune
