// SPDX-License-Identifier: Apache-2.0
#include "model/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

namespace purlin {
namespace {

constexpr std::array<std::string_view, 8> kStatusNames = {
    "ok", "invalid", "compile", "launch", "wrong", "out_of_bounds", "crash", "timeout"};

constexpr std::array<std::string_view, 3> kObjectiveNames = {"time", "energy", "edp"};

}  // namespace

std::string_view status_name(EvaluationStatus status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

std::optional<EvaluationStatus> status_from_name(std::string_view name) {
  const auto found = std::find(kStatusNames.begin(), kStatusNames.end(), name);
  if (found == kStatusNames.end()) return std::nullopt;
  return static_cast<EvaluationStatus>(found - kStatusNames.begin());
}

std::string_view objective_name(Objective objective) {
  return kObjectiveNames[static_cast<std::size_t>(objective)];
}

std::optional<Objective> objective_from_name(std::string_view name) {
  const auto found = std::find(kObjectiveNames.begin(), kObjectiveNames.end(), name);
  if (found == kObjectiveNames.end()) return std::nullopt;
  return static_cast<Objective>(found - kObjectiveNames.begin());
}

double objective_value(const Evaluation& evaluation, Objective objective) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (!evaluation.ok()) return kNone;
  if (objective == Objective::kTime) return evaluation.time_ms;
  if (evaluation.energy_mj <= 0) return kNone;
  return evaluation.energy_mj * (objective == Objective::kEdp ? evaluation.time_ms : 1);
}

Json to_json(const Evaluation& evaluation) {
  Json samples = Json::array();
  Json clocks = Json::array();
  bool clocks_known = false;
  for (const Sample& sample : evaluation.samples) {
    samples.push(sample.ms);
    clocks.push(sample.sm_clock_mhz);
    clocks_known |= sample.sm_clock_mhz > 0;
  }
  Json out = Json::object(
      {{"config", to_json(evaluation.config)}, {"status", status_name(evaluation.status)}});
  if (!evaluation.message.empty()) out.set("message", evaluation.message);
  if (evaluation.ok()) out.set("time_ms", evaluation.time_ms);
  if (evaluation.raced_out) out.set("raced_out", true);
  out.set("samples_ms", std::move(samples));
  if (clocks_known) out.set("sm_clock_mhz", std::move(clocks));
  if (!evaluation.how.empty()) out.set("how", evaluation.how);
  if (evaluation.input_sets > 1) out.set("input_sets", evaluation.input_sets);
  if (evaluation.energy_mj > 0)
    out.set("energy_mj", evaluation.energy_mj)
        .set("energy_error", evaluation.energy_error)
        .set("power_w", evaluation.power_w);
  if (!evaluation.counters.empty()) {
    Json counters = Json::object();
    for (const auto& [name, value] : evaluation.counters) counters.set(name, value);
    out.set("counters", std::move(counters));
  }
  if (evaluation.counters_s > 0) out.set("counters_s", evaluation.counters_s);
  out.set("compile_s", evaluation.compile_s);
  out.set("verify_s", evaluation.verify_s);
  out.set("measure_s", evaluation.measure_s);
  out.set("cost_s", evaluation.cost_s);
  out.set("cumulative_cost_s", evaluation.cumulative_cost_s);
  if (evaluation.registers > 0) out.set("registers", evaluation.registers);
  if (evaluation.shared_bytes > 0) out.set("shared_bytes", evaluation.shared_bytes);
  if (evaluation.local_bytes > 0) out.set("local_bytes", evaluation.local_bytes);
  out.set("cached_binary", evaluation.cached_binary);
  return out;
}

Result<Evaluation> evaluation_from_json(const Json& json) {
  Evaluation evaluation;
  Result<Config> config = config_from_json(json["config"]);
  if (!config.is_ok()) return config.status().with_context("config");
  evaluation.config = *config;
  PURLIN_ASSIGN(const std::string status, json.string_at("status"));
  const auto known = status_from_name(status);
  if (!known) return error(Code::kInvalid, "unknown evaluation status '{}'", status);
  evaluation.status = *known;
  evaluation.message = json["message"].as_string();
  const Json::Array& clocks = json["sm_clock_mhz"].items();
  for (const Json& ms : json["samples_ms"].items()) {
    if (!ms.is_number()) return error(Code::kInvalid, "\"samples_ms\" must hold numbers");
    const std::size_t i = evaluation.samples.size();
    evaluation.samples.push_back({ms.as_double(), i < clocks.size() ? clocks[i].as_double() : 0});
  }
  const bool is_timed = !evaluation.samples.empty();
  // A coarse clock may show 0 for single samples.
  std::erase_if(evaluation.samples,
                [](const Sample& sample) { return !(sample.ms >= 0 && sample.ms <= kMostMs); });
  if (evaluation.ok()) {
    PURLIN_ASSIGN(evaluation.time_ms, json.double_at("time_ms"));
    // Of what was only compiled there is no time.
    if (!is_time_ms(evaluation.time_ms) && (is_timed || evaluation.time_ms != 0)) {
      evaluation.status = EvaluationStatus::kLaunch;
      evaluation.message = fmt::format("its recorded time, {:g} ms, is none", evaluation.time_ms);
      evaluation.time_ms = 0;
      evaluation.samples.clear();
    }
  }
  evaluation.raced_out = json["raced_out"].as_bool();
  evaluation.compile_s = json["compile_s"].as_double();
  evaluation.verify_s = json["verify_s"].as_double();
  evaluation.measure_s = json["measure_s"].as_double();
  evaluation.cost_s = json["cost_s"].as_double();
  evaluation.cumulative_cost_s = json["cumulative_cost_s"].as_double();
  evaluation.registers = static_cast<int>(json["registers"].as_int());
  evaluation.shared_bytes = json["shared_bytes"].as_int();
  evaluation.local_bytes = json["local_bytes"].as_int();
  evaluation.cached_binary = json["cached_binary"].as_bool();
  evaluation.how = json["how"].as_string();
  evaluation.energy_mj = json["energy_mj"].as_double();
  evaluation.energy_error = json["energy_error"].as_double();
  evaluation.power_w = json["power_w"].as_double();
  for (const auto& [name, value] : json["counters"].members())
    if (value.is_number()) evaluation.counters[name] = value.as_double();
  evaluation.counters_s = json["counters_s"].as_double();
  evaluation.input_sets = static_cast<int>(std::max<std::int64_t>(json["input_sets"].as_int(1), 1));
  return evaluation;
}

double median_ms(const std::vector<Sample>& samples) {
  if (samples.empty()) std::abort();  // a median of nothing is the caller's mistake
  std::vector<double> times;
  for (const Sample& sample : samples) times.push_back(sample.ms);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  if (times.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(times.begin(), middle)) / 2;
}

}  // namespace purlin
