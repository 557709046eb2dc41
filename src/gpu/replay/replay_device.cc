// SPDX-License-Identifier: Apache-2.0
#include "gpu/replay/replay_device.h"

#include "base/json/json.h"

namespace purlin::gpu {
namespace {

class ReplayKernel : public Kernel {
 public:
  explicit ReplayKernel(const RecordedRun& run) : recorded(run) {}
  const RecordedRun& recorded;
  std::size_t next = 0;
};

Status no_memory() {
  return error(Code::kUnavailable,
               "a recorded space has no memory and runs no kernels; use a real device to verify");
}

bool fails_when_compiled(EvaluationStatus status) {
  return status == EvaluationStatus::kCompile || status == EvaluationStatus::kInvalid;
}

}  // namespace

ReplayDevice::ReplayDevice(ReplaySpace space, const std::string& path) : space_(std::move(space)) {
  info_.id = "replay:" + path;
  info_.backend = "replay";
  info_.kind = "gpu";
  info_.name = space_.device().empty() ? "recorded device" : space_.device();
  info_.toolkit = "recorded";
}

const RecordedRun& ReplayDevice::recorded(const Kernel& kernel) {
  return static_cast<const ReplayKernel&>(kernel).recorded;
}

std::optional<RecordedCost> ReplayDevice::recorded_cost(const Config& config) const {
  const Result<const RecordedRun*> found = space_.find(config);
  if (!found.is_ok()) return std::nullopt;
  const RecordedRun& run = **found;
  return RecordedCost{run.compile_s, run.verification_s, run.benchmark_s, run.cost_s()};
}

// The image is the config itself, so that it means the same to any process.
Result<Binary> ReplayDevice::compile(const CompileRequest& request) {
  PURLIN_ASSIGN(const RecordedRun* run, space_.find(request.config));
  if (fails_when_compiled(run->status))
    return error(Code::kInvalid, "recorded as {}", run->failure);
  return Binary{request.entry, to_json(space_.config(*run)).dump(), "", run->compile_s};
}

Result<std::unique_ptr<Kernel>> ReplayDevice::load(const Binary& binary) {
  PURLIN_ASSIGN(const Json json, Json::parse(binary.image));
  PURLIN_ASSIGN(const Config config, config_from_json(json));
  PURLIN_ASSIGN(const RecordedRun* run, space_.find(config));
  return std::unique_ptr<Kernel>(std::make_unique<ReplayKernel>(*run));
}

Result<std::unique_ptr<Buffer>> ReplayDevice::allocate(std::size_t) { return no_memory(); }
Status ReplayDevice::write(Buffer&, std::size_t, const void*, std::size_t) { return no_memory(); }
Status ReplayDevice::read(const Buffer&, std::size_t, void*, std::size_t) { return no_memory(); }
Status ReplayDevice::copy(Buffer&, std::size_t, const Buffer&, std::size_t, std::size_t) {
  return no_memory();
}
Status ReplayDevice::fill(Buffer&, std::size_t, std::uint8_t, std::size_t) { return no_memory(); }

Status ReplayDevice::run(const Launch& launch) {
  if (launch.kernel == nullptr) return error(Code::kInvalid, "a launch without a kernel");
  const RecordedRun& run = recorded(*launch.kernel);
  if (run.status == EvaluationStatus::kOk) return Status::ok();
  const Code code = run.status == EvaluationStatus::kTimeout ? Code::kTimeout : Code::kInvalid;
  return error(code, "recorded as {}", run.failure);
}

Result<std::vector<Sample>> ReplayDevice::time(const Launch& launch, const TimingRequest& request) {
  PURLIN_TRY(run(launch));
  if (request.samples < 1 || request.launches_per_sample < 1)
    return error(Code::kInvalid, "timing takes at least one sample of one launch");
  auto& kernel = static_cast<ReplayKernel&>(*launch.kernel);
  const std::vector<double>& recorded_ms = kernel.recorded.samples_ms;
  std::vector<Sample> samples;
  double spent_s = 0;
  while (static_cast<int>(samples.size()) < request.samples) {
    double sum_ms = 0;
    for (int n = 0; n < request.launches_per_sample; ++n)
      sum_ms += recorded_ms[kernel.next++ % recorded_ms.size()];
    samples.push_back({sum_ms / request.launches_per_sample, 0});
    spent_s += sum_ms * 1e-3;
    if (request.budget_s > 0 && spent_s >= request.budget_s) break;
  }
  return samples;
}

Result<std::unique_ptr<Device>> open_replay(const std::string& path) {
  PURLIN_ASSIGN(ReplaySpace space, ReplaySpace::read(path));
  return std::unique_ptr<Device>(std::make_unique<ReplayDevice>(std::move(space), path));
}

}  // namespace purlin::gpu
