// SPDX-License-Identifier: Apache-2.0
// The community's T4 output.
#include "base/time.h"
#include "gpu/replay/recording_reader.h"

#include <numeric>

namespace purlin::gpu {
namespace {

// Milliseconds per unit of a result's times. The schema means ms; converters keep the unit of the
// tuner and state it at the measurement that the times are of.
Result<double> t4_unit_ms(const Json& metadata, const Json& result) {
  const Json* stated = nullptr;
  for (const Json& measurement : result["measurements"].items()) {
    const Json& unit = measurement["unit"];
    const std::string& name = measurement["name"].as_string();
    bool objective = name == "time";
    for (const Json& wanted : result["objectives"].items())
      objective = objective || name == wanted.as_string();
    const bool is_time = ns_per_unit(unit.as_string()).has_value();
    if (objective && name == "time" && !is_time && !unit.as_string().empty())
      return error(Code::kInvalid, "the time has the unit '{}', which is no unit of time",
                   unit.as_string());
    if (is_time && (objective || stated == nullptr)) stated = &unit;
    if (is_time && objective) break;
  }
  for (const char* key : {"time_unit", "timeunit", "TimeUnit"})
    if (stated == nullptr && metadata[key].is_string()) stated = &metadata[key];
  if (stated == nullptr) return 1.0;
  const std::optional<double> ns = ns_per_unit(stated->as_string());
  if (!ns)
    return error(Code::kInvalid, "\"metadata\" has the unit of time '{}', which is not known",
                 stated->as_string());
  return *ns * 1e-6;
}

class T4Reader : public RecordingReader {
 public:
  Result<Recording> head(const Json& document) override {
    metadata_ = document["metadata"];
    Recording recording;
    recording.format = "t4";
    return recording;
  }

  Status add(const Json& result, RecordingBuilder& to) override {
    const Json& configuration = result["configuration"];
    if (parameters_.empty())
      for (const auto& [name, value] : configuration.members()) parameters_.push_back({name, {}});
    if (parameters_.empty())
      return error(Code::kInvalid, "the first of \"results\" has no \"configuration\"");
    const Status status = add_result(result, to);
    return status.is_ok() ? status : status.with_context(fmt::format("result {}", number_ - 1));
  }

 private:
  Status add_result(const Json& result, RecordingBuilder& to) {
    ++number_;
    PURLIN_ASSIGN(const Config config, config_of(parameters_, result["configuration"]));
    RecordedRun run;
    const Json& times = result["times"];
    PURLIN_ASSIGN(const double unit_ms, t4_unit_ms(metadata_, result));
    const double unit_s = unit_ms * 1e-3;
    // The schema says compilation_time; what is in circulation says compilation.
    run.compile_s = seconds_of(
        times.find("compilation") != nullptr ? times["compilation"] : times["compilation_time"],
        unit_s);
    run.verification_s = seconds_of(times["validation"], unit_s);
    run.overhead_s =
        seconds_of(times["framework"], unit_s) + seconds_of(times["search_algorithm"], unit_s);
    run.samples_ms = samples_of(times["runtimes"], unit_ms);
    run.benchmark_s = 1e-3 * std::accumulate(run.samples_ms.begin(), run.samples_ms.end(), 0.0);
    run.timestamp = result["timestamp"].as_string();
    for (const Json& measurement : result["measurements"].items())
      if (const std::string& name = measurement["name"].as_string();
          !name.empty() && name != "time" && measurement["value"].is_number() &&
          run.metrics.size() < kMaxMetrics)
        run.metrics.emplace_back(name, measurement["value"].as_double());
    const std::string& invalidity = result["invalidity"].as_string();
    set_failure(run, invalidity == "correct" ? "" : invalidity);
    return to.add(std::move(run), config);
  }

  Json metadata_;
  std::vector<Recording::Parameter> parameters_;
  std::size_t number_ = 0;
};

}  // namespace

std::unique_ptr<RecordingReader> make_t4_reader() { return std::make_unique<T4Reader>(); }

}  // namespace purlin::gpu
