// SPDX-License-Identifier: Apache-2.0
// Outcomes: what a change saved against what was predicted, and what follows for the next
// prediction of the same rule. After five outcomes the rule's interval is a conformal quantile of
// log(measured / predicted); before, its model's. Pure functions over values; the file that keeps
// outcomes is written by `purlin advise --outcome`. Format: docs/formats/outcomes.md.
#pragma once

#include "analyze/advise/savings/estimate.h"
#include "base/json/json.h"
#include "base/status.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct Outcome {
  std::string rule;           // id of the remedy
  std::string device;         // model
  std::string confidence;     // of the prediction
  Interval3 predicted;        // share of the unit's time
  double measured = 0;        // the same; negative: a loss
  std::string before, after;  // ids of the two profiles
  std::string recorded;       // time, UTC
  bool inside() const { return predicted.low <= measured && measured <= predicted.high; }
};
Json to_json(const Outcome& outcome);  // purlin.outcome/1
// kInvalid for what is none: a line of the file may be another version's, or damaged.
Result<Outcome> outcome_from_json(const Json& line);

struct TrackRecord {  // of one rule
  std::size_t outcomes = 0, inside = 0;
  double median_ratio = 1;          // measured / predicted.mid
  std::optional<Interval3> factor;  // of a prediction's middle; from kEnoughOutcomes on
};
inline constexpr std::size_t kEnoughOutcomes = 5;
inline constexpr double kCoverage = 0.8;  // of the outcomes to come, at least

using TrackRecords = std::map<std::string, TrackRecord, std::less<>>;
TrackRecords track_records(const std::vector<Outcome>& outcomes);

}  // namespace purlin::analyze
