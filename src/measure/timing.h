// SPDX-License-Identifier: Apache-2.0
// The one way to time a kernel: warm-up, repeats until the confidence interval decides, racing.
//
// The tuner, the guard and `purlin bench` all time through here, so their numbers compare.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "gpu/device.h"
#include "model/evaluation.h"

#include <vector>

namespace purlin::measure {

struct Policy {
  int warmup_launches = 3;
  int min_samples = 7;
  int max_samples = 40;
  double budget_s = 0.5;       // of device and host time per kernel, after min_samples
  double target_error = 0.01;  // stop once the 95 % interval of the median is this narrow, relative
  double min_sample_ms =
      0.02;               // shorter kernels are launched back to back, the sample is their mean
  bool flush_l2 = false;  // false: warm cache, the state of a kernel inside a pipeline
  double give_up_ms = 0;  // >0: racing; stop as soon as the kernel cannot be this fast
};

Json to_json(const Policy& policy);
Result<Policy> policy_from_json(const Json& json);

struct Timing {
  std::vector<Sample> samples;
  bool gave_up = false;  // stopped by give_up_ms: the samples are real, but few
};

// At least one sample unless it fails; the failure is the device's.
Result<Timing> time_kernel(gpu::Device& device, const gpu::Launch& launch, const Policy& policy);

// Distribution-free interval of the median from order statistics (binomial), 95 %: {low, high} of
// the sorted samples; with fewer than 6 samples their full range.
struct Interval {
  double low = 0, high = 0;
};
Interval median_interval_ms(const std::vector<Sample>& samples);

}  // namespace purlin::measure
