// SPDX-License-Identifier: Apache-2.0
#include "community_score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace purlin::bench {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Point {
  double x = 0, y = 0;
};

// Piecewise cubic Hermite interpolation that keeps monotone data monotone (Fritsch, Butland 1984).
// REQUIRES: x ascends strictly, at least two points.
class Pchip {
 public:
  explicit Pchip(std::vector<Point> points) : points_(std::move(points)), slope_(points_.size()) {
    const std::size_t last = points_.size() - 1;
    const auto width = [&](std::size_t i) { return points_[i + 1].x - points_[i].x; };
    const auto secant = [&](std::size_t i) { return (points_[i + 1].y - points_[i].y) / width(i); };
    if (last == 1) {
      slope_[0] = slope_[1] = secant(0);
      return;
    }
    for (std::size_t i = 1; i < last; ++i) {
      const double before = secant(i - 1), after = secant(i);
      if (before * after <= 0) continue;
      const double w1 = 2 * width(i) + width(i - 1), w2 = width(i) + 2 * width(i - 1);
      slope_[i] = (w1 + w2) / (w1 / before + w2 / after);
    }
    slope_[0] = end_slope(width(0), width(1), secant(0), secant(1));
    slope_[last] = end_slope(width(last - 1), width(last - 2), secant(last - 1), secant(last - 2));
  }

  double operator()(double x) const {
    auto above = std::upper_bound(points_.begin() + 1, points_.end() - 1, x,
                                  [](double at, const Point& point) { return at < point.x; });
    const std::size_t i = static_cast<std::size_t>(above - points_.begin()) - 1;
    const double h = points_[i + 1].x - points_[i].x, t = (x - points_[i].x) / h;
    const double t2 = t * t, t3 = t2 * t;
    return points_[i].y * (2 * t3 - 3 * t2 + 1) + slope_[i] * h * (t3 - 2 * t2 + t) +
           points_[i + 1].y * (3 * t2 - 2 * t3) + slope_[i + 1] * h * (t3 - t2);
  }

 private:
  static double end_slope(double h0, double h1, double m0, double m1) {
    const double slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1);
    if (slope * m0 <= 0) return 0;
    return m0 * m1 <= 0 && std::abs(slope) > 3 * std::abs(m0) ? 3 * m0 : slope;
  }

  std::vector<Point> points_;
  std::vector<double> slope_;
};

// The non-increasing function nearest to the points in least squares (pool adjacent violators),
// linear between them and constant outside. REQUIRES: not empty.
class DecreasingFit {
 public:
  explicit DecreasingFit(std::vector<Point> points) {
    std::sort(points.begin(), points.end(),
              [](const Point& a, const Point& b) { return a.x < b.x; });
    struct Block {
      double mean, weight;
      std::size_t knots;
    };
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < points.size();) {
      double sum = 0, weight = 0;
      const double x = points[i].x;
      for (; i < points.size() && points[i].x == x; ++i) sum += points[i].y, weight += 1;
      knots_.push_back({x, 0});
      Block block{sum / weight, weight, 1};
      while (!blocks.empty() && blocks.back().mean < block.mean) {
        const Block& before = blocks.back();
        const double both = before.weight + block.weight;
        block = {(before.mean * before.weight + block.mean * block.weight) / both, both,
                 before.knots + block.knots};
        blocks.pop_back();
      }
      blocks.push_back(block);
    }
    std::size_t knot = 0;
    for (const Block& block : blocks)
      for (std::size_t i = 0; i < block.knots; ++i) knots_[knot++].y = block.mean;
  }

  double operator()(double x) const {
    const auto above = std::upper_bound(knots_.begin(), knots_.end(), x,
                                        [](double at, const Point& knot) { return at < knot.x; });
    if (above == knots_.begin()) return knots_.front().y;
    if (above == knots_.end()) return knots_.back().y;
    const Point &a = *(above - 1), &b = *above;
    return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
  }

 private:
  std::vector<Point> knots_;
};

}  // namespace

std::optional<double> true_value(const gpu::RecordedRun& run) {
  if (run.status != EvaluationStatus::kOk || run.samples_ms.empty()) return std::nullopt;
  return std::accumulate(run.samples_ms.begin(), run.samples_ms.end(), 0.0) /
         static_cast<double>(run.samples_ms.size());
}

Result<CommunityScore> CommunityScore::of(const gpu::ReplaySpace& recording) {
  std::vector<Trial> space;
  for (const gpu::RecordedRun& run : recording.runs())
    space.push_back({true_value(run), run.cost_s()});
  return of(space);
}

Result<CommunityScore> CommunityScore::of(const std::vector<Trial>& space) {
  CommunityScore score;
  std::vector<double> costs;
  double valid_s = 0, failed_s = 0;
  for (const Trial& trial : space) {
    costs.push_back(trial.cost_s);
    (trial.value ? valid_s : failed_s) += trial.cost_s;
    if (trial.value) score.values_.push_back(*trial.value);
  }
  if (score.values_.size() < 2)
    return error(Code::kInvalid, "fewer than two configs of the space work");
  std::sort(score.values_.begin(), score.values_.end());
  score.median_cost_s_ = median(costs);
  const double failed = static_cast<double>(space.size() - score.values_.size());
  score.mean_cost_s_ = valid_s / static_cast<double>(score.values_.size());
  // The share of failures times their mean cost.
  if (failed > 0) score.mean_cost_s_ += failed_s / static_cast<double>(space.size());
  if (!(score.median_cost_s_ > 0) || !(score.mean_cost_s_ > 0))
    return error(Code::kInvalid, "the recording has no costs, so there is no budget of time");
  return score;
}

std::size_t CommunityScore::cutoff_evaluations(double share) const {
  if (limited()) return share < kLast ? 1 : limit_;
  const double target = optimum() + (median(values_) - optimum()) * (1 - share);
  const auto slower = static_cast<std::size_t>(
      values_.end() - std::upper_bound(values_.begin(), values_.end(), target));
  const std::size_t left = values_.size() + 1 - slower;
  return (slower + left - 1) / left;
}

double CommunityScore::cutoff_s(double share) const {
  return static_cast<double>(cutoff_evaluations(share)) * median_cost_s_;
}

std::size_t CommunityScore::rank(double value) const {
  const auto first = std::lower_bound(values_.begin(), values_.end(), value);
  return static_cast<std::size_t>(first - values_.begin());
}

// Random search's expected value at each instant: by the number of draws made until then, and
// smoothed over the numbers of draws so that it has no steps.
std::vector<double> CommunityScore::baseline(const std::vector<double>& instants) const {
  const double size = static_cast<double>(values_.size());
  const auto draws = [&](double instant) {
    return std::nearbyint(std::max(instant / mean_cost_s_, 1.0));
  };
  std::vector<Point> points;
  for (const double instant : instants) {
    const double count = draws(instant);
    if (!points.empty() && points.back().x == count) continue;
    const double place = std::min(size - 1, std::nearbyint(count * (size + 1) / (count + 1)));
    points.push_back({count, values_[values_.size() - 1 - static_cast<std::size_t>(place)]});
  }
  if (points.size() < 2) return std::vector<double>(instants.size(), points.front().y);
  const Pchip smooth(points);
  const double first = points.front().x, last = points.back().x;
  std::vector<double> curve;
  for (std::size_t i = 0; i < instants.size(); ++i)
    curve.push_back(smooth(first + (last - first) * static_cast<double>(i) /
                                       static_cast<double>(instants.size() - 1)));
  return curve;
}

std::vector<double> CommunityScore::curve(const std::vector<std::vector<Trial>>& repeats) const {
  std::vector<Point> points;
  for (const std::vector<Trial>& repeat : repeats) {
    double spent_s = 0;
    for (const Trial& trial : repeat) {
      spent_s += trial.cost_s;
      if (trial.value && spent_s <= run_s())
        points.push_back({spent_s, static_cast<double>(rank(*trial.value))});
    }
    // One that ended early keeps what it had.
    if (spent_s < run_s() && !repeat.empty() && repeat.back().value)
      points.push_back({run_s(), static_cast<double>(rank(*repeat.back().value))});
  }
  std::vector<double> scores(kPoints, 0.0);
  if (points.empty()) return std::vector<double>(kPoints, -1.0);
  const DecreasingFit fit(std::move(points));
  const double first = cutoff_s(kFirst), last = cutoff_s(kLast);
  std::vector<double> instants;
  for (std::size_t i = 0; i < kPoints; ++i)
    instants.push_back(first +
                       (last - first) * static_cast<double>(i) / static_cast<double>(kPoints - 1));
  const std::vector<double> random = baseline(instants);
  for (std::size_t i = 0; i < kPoints; ++i) {
    const auto place = static_cast<std::size_t>(std::nearbyint(fit(instants[i])));
    const double found = values_[std::min(place, values_.size() - 1)];
    const double way = random[i] - optimum();
    scores[i] = way > 0 ? (random[i] - found) / way : (found <= optimum() ? 1.0 : 0.0);
  }
  return scores;
}

double CommunityScore::mean(const std::vector<double>& curve) {
  return std::accumulate(curve.begin(), curve.end(), 0.0) / static_cast<double>(curve.size());
}

}  // namespace purlin::bench
