// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/learn/outcome.h"

#include "base/text.h"

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

constexpr std::string_view kOutcomeSchema = "purlin.outcome/1";
constexpr std::size_t kLongestId = 128;
// A change that saved nothing, or lost, counts as a hundredth of what was predicted.
constexpr double kLeastRatio = 0.01;

bool is_share(double value) { return std::isfinite(value) && value >= -100 && value <= 1; }

bool is_rule(std::string_view id) {
  return !id.empty() && id.size() <= kLongestId && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

// The quantile that covers one more outcome with kCoverage: the ceil((n + 1) * coverage)-th
// smallest distance from the median; with few outcomes the greatest.
double conformal_distance(const std::vector<double>& logs, double centre) {
  std::vector<double> distances;
  for (const double log : logs) distances.push_back(std::abs(log - centre));
  std::sort(distances.begin(), distances.end());
  const auto rank =
      static_cast<std::size_t>(std::ceil(kCoverage * static_cast<double>(distances.size() + 1)));
  return distances[std::min(rank, distances.size()) - 1];
}

TrackRecord record_of(const std::vector<const Outcome*>& outcomes) {
  TrackRecord out;
  out.outcomes = outcomes.size();
  std::vector<double> logs;
  for (const Outcome* one : outcomes) {
    out.inside += one->inside() ? 1 : 0;
    logs.push_back(std::log(std::max(kLeastRatio, one->measured / one->predicted.mid)));
  }
  const double centre = median_of(logs);
  out.median_ratio = std::exp(centre);
  if (out.outcomes < kEnoughOutcomes) return out;
  const double distance = conformal_distance(logs, centre);
  out.factor = {std::exp(centre - distance), std::exp(centre), std::exp(centre + distance)};
  return out;
}

}  // namespace

Json to_json(const Outcome& outcome) {
  return Json::object({{"schema", kOutcomeSchema},
                       {"rule", outcome.rule},
                       {"device", outcome.device},
                       {"confidence", outcome.confidence},
                       {"predicted", Json::object({{"low", outcome.predicted.low},
                                                   {"mid", outcome.predicted.mid},
                                                   {"high", outcome.predicted.high}})},
                       {"measured", outcome.measured},
                       {"inside", outcome.inside()},
                       {"before", outcome.before},
                       {"after", outcome.after},
                       {"recorded", outcome.recorded}});
}

Result<Outcome> outcome_from_json(const Json& line) {
  if (!line.is_object() || line["schema"].as_string() != kOutcomeSchema)
    return error(Code::kInvalid, "no {}", kOutcomeSchema);
  Outcome out;
  out.rule = line["rule"].as_string();
  out.device = line["device"].as_string();
  out.confidence = line["confidence"].as_string();
  const Json& predicted = line["predicted"];
  out.predicted = {predicted["low"].as_double(NAN), predicted["mid"].as_double(NAN),
                   predicted["high"].as_double(NAN)};
  out.measured = line["measured"].as_double(NAN);
  out.before = line["before"].as_string();
  out.after = line["after"].as_string();
  out.recorded = line["recorded"].as_string();
  if (!is_rule(out.rule)) return error(Code::kInvalid, "rule: no id of a rule");
  const Interval3& share = out.predicted;
  if (!is_share(share.low) || !is_share(share.mid) || !is_share(share.high) ||
      share.low > share.mid || share.mid > share.high || share.mid <= 0)
    return error(Code::kInvalid, "predicted: no interval of shares with a positive middle");
  if (!is_share(out.measured)) return error(Code::kInvalid, "measured: no share");
  return out;
}

TrackRecords track_records(const std::vector<Outcome>& outcomes) {
  std::map<std::string, std::vector<const Outcome*>> by_rule;
  for (const Outcome& one : outcomes) by_rule[one.rule].push_back(&one);
  TrackRecords out;
  for (const auto& [rule, list] : by_rule) out[rule] = record_of(list);
  return out;
}

}  // namespace purlin::analyze
