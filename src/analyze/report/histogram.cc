// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/histogram.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace purlin::analyze {

std::vector<Bin> histogram(const Sketch& sketch, int max_bins) {
  std::vector<Bin> bins;
  const std::vector<double>& weights = sketch.buckets();
  const auto used = [](double weight) { return weight > 0; };
  const auto first = std::find_if(weights.begin(), weights.end(), used);
  if (first == weights.end() || max_bins <= 0) return bins;
  const auto last = std::find_if(weights.rbegin(), weights.rend(), used).base();
  const auto span = static_cast<int>(last - first);
  const int per_bin = (span + max_bins - 1) / max_bins;
  const int origin = sketch.first_bucket() + static_cast<int>(first - weights.begin());
  for (int at = 0; at < span; at += per_bin) {
    const int end = std::min(span, at + per_bin);
    Bin bin;
    bin.low_ns = std::max(sketch.min_ns(), Sketch::lower_bound(origin + at, sketch.scale()));
    bin.high_ns = std::min(sketch.max_ns(), Sketch::lower_bound(origin + end, sketch.scale()));
    for (int i = at; i < end; ++i) bin.count += first[i];
    bins.push_back(bin);
  }
  bins.front().low_ns = sketch.min_ns();
  bins.back().high_ns = sketch.max_ns();
  return bins;
}

Json histogram_json(const Sketch& sketch) {
  constexpr int kBins = 40;
  Json low = Json::array(), high = Json::array(), count = Json::array();
  for (const Bin& bin : histogram(sketch, kBins)) {
    low.push(std::round(bin.low_ns));
    high.push(std::round(bin.high_ns));
    count.push(bin.count);
  }
  Json out = Json::object();
  out.set("low_ns", std::move(low)).set("high_ns", std::move(high)).set("count", std::move(count));
  return out;
}

}  // namespace purlin::analyze
