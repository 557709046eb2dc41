// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/hardware_counters.h"

#include "base/os/library.h"
#include "gpu/cuda/range_profiler.h"
#include "gpu/vendor_libraries.h"
#include "model/device/counter_cards.h"
#include "model/device/launch_counters.h"

#include <cstdint>

namespace purlin::gpu {
namespace {

class CuptiHardwareCounters : public HardwareCounters {
 public:
  ~CuptiHardwareCounters() override { range_.disable(); }

  Status open(int driver_major) {
    const std::vector<int> majors =
        driver_major == 12 ? std::vector<int>{12, 13} : std::vector<int>{13, 12};
    const auto library = Library::open(vendor_library_names("cupti", majors));
    if (!library.is_ok())
      return error(Code::kUnavailable,
                   "libcupti was not found; install the CUDA toolkit's CUPTI or the Python package "
                   "nvidia-cuda-cupti, or name it in PURLIN_CUPTI");
    library->bind(text_of_, "cuptiGetResultString");
    if (!range_.bind(library->handle()))
      return error(Code::kUnavailable,
                   "{} has no range profiler; CUPTI of CUDA 12.8 and newer has one",
                   library->name());
    return Status::ok();
  }

  Result<std::map<std::string, double>> count(CUcontext context, int device,
                                              const std::function<Status()>& prepare,
                                              const std::function<Status()>& launch) override {
    PURLIN_ASSIGN(const CounterConfig* config, config_of(device));
    for (std::size_t pass = 0; pass < config->passes; ++pass) {
      PURLIN_TRY(prepare());
      const RangeStep step = pass == 0 ? range_.begin(context, *config, 1, false) : range_.again();
      if (step.result != CUPTI_SUCCESS) return refusal(step);
      const bool pushed = range_.push(0);
      const Status launched = launch();
      // The range and the session end even if the launch failed.
      const bool popped = range_.pop();
      if (!range_.finish() || !pushed || !popped || !launched.is_ok()) {
        range_.disable();
        PURLIN_TRY(launched);
        return error(Code::kUnavailable, "CUPTI's range profiler gave no numbers back");
      }
    }
    std::vector<double> values;
    if (!range_.complete() || !range_.values(*config, range_.image(), 0, values)) {
      range_.disable();
      return error(Code::kUnavailable, "CUPTI's range profiler did not count all of its passes");
    }
    return launch_counters(config->metrics, values);
  }

 private:
  std::string text_of(CUptiResult result) const {
    const char* text = nullptr;
    if (text_of_ == nullptr || text_of_(result, &text) != CUPTI_SUCCESS || text == nullptr)
      text = "CUPTI error";
    return fmt::format("{} ({})", text, static_cast<int>(result));
  }

  Status refusal(const RangeStep& step) {
    range_.disable();
    return error(counters_are_busy(step.result) ? Code::kTimeout : Code::kUnavailable, "{}",
                 counters_problem(step, text_of(step.result)));
  }

  Result<const CounterConfig*> config_of(int device) {
    if (config_ != nullptr) return config_;
    const std::string chip = range_.chip(static_cast<std::uint32_t>(device));
    if (chip.empty()) return error(Code::kUnavailable, "CUPTI's profiler cannot be initialised");
    const std::vector<std::string_view> metrics = tuning_counters(chip);
    if (metrics.empty())
      return error(Code::kUnavailable, "the counters of the chip {} are not known", chip);
    CUptiResult why = CUPTI_SUCCESS;
    const CounterConfig* config = range_.config(chip, metrics, why);
    if (config == nullptr)
      return error(Code::kUnavailable, "this CUPTI does not know the counters of {}: {}", chip,
                   text_of(why));
    return config_ = config;
  }

  RangeProfiler range_;
  decltype(&cuptiGetResultString) text_of_ = nullptr;
  const CounterConfig* config_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<HardwareCounters>> open_hardware_counters(int driver_major) {
  auto counter = std::make_unique<CuptiHardwareCounters>();
  PURLIN_TRY(counter->open(driver_major));
  return std::unique_ptr<HardwareCounters>(std::move(counter));
}

}  // namespace purlin::gpu
