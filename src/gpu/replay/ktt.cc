// SPDX-License-Identifier: Apache-2.0
// KTT's JSON output, versions 2.0 to 2.2.
#include "base/time.h"
#include "gpu/replay/recording_reader.h"

namespace purlin::gpu {
namespace {

Result<double> seconds_per_unit(const std::string& unit) {
  if (const std::optional<double> ns = ns_per_unit(unit)) return *ns * 1e-9;
  return error(Code::kInvalid,
               "\"Metadata\" has the TimeUnit '{}', which is none of Nanoseconds, Microseconds, "
               "Milliseconds, Seconds",
               unit);
}

Result<Config> ktt_config(const Json& result) {
  Config config;
  for (const Json& pair : result["Configuration"].items()) {
    PURLIN_ASSIGN(const std::string name, pair.string_at("Name"));
    const Json* json = pair.find("Value");
    if (json == nullptr) return error(Code::kInvalid, "the parameter '{}' has no Value", name);
    PURLIN_ASSIGN(Value value, value_from_json(*json));
    config.set(name, std::move(value));
  }
  if (config.empty()) return error(Code::kInvalid, "has no \"Configuration\" with parameters");
  return config;
}

class KttReader : public RecordingReader {
 public:
  Result<Recording> head(const Json& document) override {
    const Json& metadata = document["Metadata"];
    PURLIN_ASSIGN(unit_s_, seconds_per_unit(metadata["TimeUnit"].as_string()));
    timestamp_ = metadata["Timestamp"].as_string();
    Recording recording;
    recording.format = "ktt";
    recording.device = metadata["Device"].as_string();
    recording.toolkit = metadata["ComputeApi"].as_string();
    return recording;
  }

  Status add(const Json& result, RecordingBuilder& to) override {
    const Status status = add_result(result, to);
    const std::string where = fmt::format("\"Results\" {}", number_++);
    return status.is_ok() ? status : status.with_context(where);
  }

 private:
  Status add_result(const Json& result, RecordingBuilder& to) const {
    PURLIN_ASSIGN(const Config config, ktt_config(result));
    to.name_kernel(result["KernelName"].as_string());
    RecordedRun run;
    run.timestamp = timestamp_;
    // KTT runs a config once. All other time, compiling and verifying included, is its overhead.
    run.samples_ms = samples_of(Json::array({result["TotalDuration"]}), unit_s_ * 1e3);
    run.benchmark_s = seconds_of(result["TotalDuration"], unit_s_);
    run.overhead_s = seconds_of(result["TotalOverhead"], unit_s_);
    // For a config of several kernels, the counters of the first kernel: a sum has no meaning.
    const Json::Array& kernels = result["ComputationResults"].items();
    if (!kernels.empty())
      for (const Json& counter : kernels.front()["ProfilingData"]["Counters"].items())
        if (const Json* value = counter.find("Value"); value != nullptr && value->is_number())
          run.counters[counter["Name"].as_string()] = value->as_double();
    const std::string& state = result["Status"].as_string();
    set_failure(run, state == "Ok" ? "" : state.empty() ? "no Status" : state);
    return to.add(std::move(run), config);
  }

  double unit_s_ = 1;
  std::string timestamp_;
  std::size_t number_ = 0;
};

}  // namespace

std::unique_ptr<RecordingReader> make_ktt_reader() { return std::make_unique<KttReader>(); }

}  // namespace purlin::gpu
