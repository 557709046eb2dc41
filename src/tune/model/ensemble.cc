// SPDX-License-Identifier: Apache-2.0
#include "tune/model/ensemble.h"

#include "tune/model/boosted_trees.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace purlin::tune {
namespace {

constexpr BoostingOptions kBoosting{25, 4, 0.25, 0.7, 1, 2};
constexpr double kRows = 0.8;    // share of the observations each member sees
constexpr double kClip = 0.5;    // quantile above which all are alike
constexpr double kFailed = 0.9;  // quantile that represents a failure

constexpr std::size_t kFitted = 1024;  // observations a fit takes at most

class Trees : public Regressor {
 public:
  Trees(const FitRequest& request, Random& random)
      : width_(request.width),
        trees_(request.rows, request.width, request.targets, request.chosen, kBoosting, random) {}
  void predict(std::span<const std::uint8_t> rows, std::span<float> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = trees_.predict(rows.data() + i * width_);
  }

 private:
  std::size_t width_;
  BoostedTrees trees_;
};

// Rows of `width` bytes, each followed by its part of `more`.
std::vector<std::uint8_t> joined(std::span<const std::uint8_t> rows, std::size_t width,
                                 std::span<const std::uint8_t> more, std::size_t more_width) {
  const std::size_t count = width == 0 ? 0 : rows.size() / width;
  std::vector<std::uint8_t> all;
  all.reserve(rows.size() + more.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto own = rows.subspan(i * width, width);
    const auto added = more.subspan(i * more_width, more_width);
    all.insert(all.end(), own.begin(), own.end());
    all.insert(all.end(), added.begin(), added.end());
  }
  return all;
}

double squared_error(const Regressor& model, std::span<const std::uint8_t> row, float target) {
  float expected = 0;
  model.predict(row, std::span(&expected, 1));
  return static_cast<double>((expected - target) * (expected - target));
}

}  // namespace

FitRegressor fit_boosted_trees() {
  return [](const FitRequest& request, Random& random) -> std::unique_ptr<Regressor> {
    return std::make_unique<Trees>(request, random);
  };
}

void Ensemble::add(std::size_t index, std::optional<double> time_ms,
                   const std::map<std::string, double>& counters) {
  const std::size_t width = encoding_.features(), begin = rows_.size();
  rows_.resize(begin + width);
  encoding_.encode(index, std::span(rows_).subspan(begin));
  std::optional<float> log_time;
  if (time_ms) log_time = static_cast<float>(std::log(std::max(*time_ms, 1e-9)));
  worked_ += log_time.has_value();
  log_times_.push_back(log_time);
  counters_.add(std::span(rows_).subspan(begin), counters);
}

// All rows, or the fastest and as many of the others, so that the time of a fit is bounded.
std::vector<std::uint32_t> Ensemble::fitted_rows(const std::vector<float>& targets,
                                                 Random& random) {
  std::vector<std::uint32_t> order(targets.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  if (order.size() <= kFitted) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return targets[a] < targets[b]; });
  constexpr std::size_t kFastest = kFitted / 2;
  for (std::size_t i = kFastest; i < kFitted; ++i)
    std::swap(order[i], order[i + random.below(order.size() - i)]);
  order.resize(kFitted);
  return order;
}

void Ensemble::fit(Random& random) {
  std::vector<float> sorted;
  for (const std::optional<float>& time : log_times_)
    if (time) sorted.push_back(*time);
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  const float clip = quantile(kClip), failed = quantile(kFailed);
  std::vector<float> targets;
  for (const std::optional<float>& time : log_times_)
    targets.push_back(time ? std::min(*time, clip) : failed);

  std::vector<std::uint32_t> order = fitted_rows(targets, random);
  const auto used = static_cast<std::size_t>(std::ceil(kRows * static_cast<double>(order.size())));
  const std::size_t width = encoding_.features();
  counters_.fit(width, log_times_, fit_, random);
  std::vector<std::uint8_t> with_counters;
  if (counters_.width() > 0)
    with_counters = joined(rows_, width, counters_.observed(), counters_.width());
  const std::span<const std::uint8_t> rows = counters_.width() > 0 ? with_counters : rows_;
  // Known features have many values, so trees split on them by accident where they are of no use.
  // Members without them are fitted as well. Those that predict the rest of the rows better stay.
  const std::size_t row_width = width + counters_.width();
  const std::vector<std::uint8_t> blind = without_known(rows, row_width);
  std::vector<std::unique_ptr<Regressor>> alone;
  double error = 0, error_alone = 0;
  members_.clear();
  for (std::size_t member = 0; member < kMembers; ++member) {
    random.shuffle(order);
    const auto seen = std::span(order).first(used);
    members_.push_back(fit_({rows, row_width, targets, seen}, random));
    if (blind.empty()) continue;
    alone.push_back(fit_({blind, row_width, targets, seen}, random));
    for (std::size_t i = used; i < order.size(); ++i) {
      const std::uint32_t row = order[i];
      const auto values = rows.subspan(row * row_width, row_width);
      error += squared_error(*members_.back(), values, targets[row]);
      error_alone += squared_error(*alone.back(), values, targets[row]);
    }
  }
  if (!blind.empty() && error_alone <= error) members_ = std::move(alone);
}

// The same rows with known features that are all alike, so that no tree splits on them. Empty
// without known features.
std::vector<std::uint8_t> Ensemble::without_known(std::span<const std::uint8_t> rows,
                                                  std::size_t row_width) const {
  const std::size_t known = encoding_.known(), first = encoding_.features() - known;
  if (known == 0) return {};
  std::vector<std::uint8_t> blind(rows.begin(), rows.end());
  for (std::size_t row = 0; row < blind.size(); row += row_width)
    std::fill_n(blind.begin() + static_cast<std::ptrdiff_t>(row + first), known, std::uint8_t{0});
  return blind;
}

std::vector<std::uint8_t> Ensemble::encode(std::span<const std::size_t> indices) const {
  const std::size_t width = encoding_.features();
  std::vector<std::uint8_t> rows(indices.size() * width);
  for (std::size_t i = 0; i < indices.size(); ++i)
    encoding_.encode(indices[i], std::span(rows).subspan(i * width, width));
  return rows;
}

std::vector<Ensemble::Prediction> Ensemble::predict(std::span<const std::uint8_t> rows) const {
  const std::size_t width = encoding_.features();
  std::vector<Prediction> predictions(width == 0 ? 0 : rows.size() / width);
  std::vector<std::uint8_t> with_counters;
  if (counters_.width() > 0) {
    with_counters = joined(rows, width, counters_.expected(rows, width), counters_.width());
    rows = with_counters;
  }
  std::vector<float> each(predictions.size());
  for (std::size_t member = 0; member < kMembers; ++member) {
    members_[member]->predict(rows, each);
    for (std::size_t i = 0; i < each.size(); ++i) predictions[i][member] = each[i];
  }
  return predictions;
}

}  // namespace purlin::tune
