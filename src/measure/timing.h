// SPDX-License-Identifier: Apache-2.0
// The one way to time a kernel: warm-up, repeats until the confidence interval decides, racing.
//
// The tuner and the guard time with these functions, so that their numbers are comparable. The
// reasons for the method: docs/concepts/measurement.md. Thread-safety: as the device's. Failure:
// the device's own Status, or kUnavailable when its clock gives no usable time.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "base/time.h"
#include "gpu/device.h"
#include "model/evaluation.h"

#include <functional>
#include <string>
#include <vector>

namespace purlin::measure {

// The most that a policy states of what Purlin measures itself. Where such a value is made, it is
// clamped, so that no measurement is an error.
constexpr double kMaxNoise = 10, kMaxGiveUpMs = 1e9;
constexpr int kMostSamples = 100'000;  // of a policy

struct Policy {
  int warmup_launches = 3;
  int min_samples = 7;
  int max_samples = 40;
  double budget_s = 0.5;       // of device and host time per kernel, once min_samples are there
  double target_error = 0.01;  // stop once half the median's 95 % interval is this narrow, relative
  double min_sample_ms = 0.02;  // shorter kernels run back to back, the sample is their mean
  double graph_sample_ms = 1;   // the same where the device has graphs: its events cost 4 us
  bool flush_l2 = false;        // false: warm cache, the state of a kernel inside a pipeline
  // kReuse: launches use the same inputs. kRotate: launches rotate between copies, enough that the
  // L2 cache no longer holds them. Set by the spec's [measure].
  enum class Inputs { kAsSpec, kReuse, kRotate } inputs = Inputs::kAsSpec;
  double give_up_ms = 0;  // >0: racing; stop as soon as the kernel cannot be this fast
  double energy_s = 0;    // >0: the energy is measured as well, over so many seconds
  // >0: for a kernel no slower than this, another process also reads the hardware counters
  // (tune/session/counters.h). The worker that times does not use it, and it is not in the JSON.
  double count_below_ms = 0;
  // >0: the whole evaluation may take so long, in addition to the limits of its steps. Held by the
  // process that waits for it, and not in the JSON.
  double limit_s = 0;
  double noise = 0;  // of one sample, relative, as seen on other kernels (race.h); 0 = not known
};

Json to_json(const Policy& policy);
// Absent members keep their default; a member of the wrong type or range is kInvalid by name.
Result<Policy> policy_from_json(const Json& json);

struct Timing {
  std::vector<Sample> samples;  // In the order taken, warm-up left out.
  int launches_per_sample = 1;  // >1: each sample is the mean of so many
  std::string how;              // "event", "graph x32": docs/concepts/measurement.md
  bool gave_up = false;         // stopped by give_up_ms: the samples are real, but few.
  int left_out = 0;  // samples without a time, such as those of a clock that stepped back.
};

// Called before every batch of samples; restores the contents that the kernel changes in place.
// With it, each batch is a single sample, so all samples start from the same contents.
using Restore = std::function<Status()>;

// At least one sample unless it fails. The kernel has been launched once before the first timed
// launch, so that a driver which compiles lazily does not do it in a sample.
Result<Timing> time_kernel(gpu::Device& device, const gpu::Launch& launch, const Policy& policy,
                           const Restore& restore = {}, Clock& clock = system_clock());

// What timing a kernel a batch at a time has to remember of it. 0 launches: nothing yet.
struct Pace {
  int launches = 0;      // of a sample
  double sample_ms = 0;  // of a whole sample, about
};

constexpr double kBatchMs = 5;
constexpr int kBatchSamples = 5;  // at most

// A batch between other work on the device: one launch, or as many samples as fit kBatchMs. The
// first call for a kernel warms up, in the same time, and returns no sample. The host sleeps while
// the device works, and `policy` says in which cache state it does.
Result<Timing> time_batch(gpu::Device& device, const gpu::Launch& launch, const Policy& policy,
                          Pace& pace, const Restore& restore = {}, Clock& clock = system_clock());

// Distribution-free interval of the median from order statistics (binomial), with at least that
// confidence: {low, high} of the sorted samples. Where there are too few for it, fewer than 6 at
// 95 %, it is their full range. {0, 0} when empty.
struct Interval {
  double low = 0, high = 0;
};
Interval median_interval_ms(const std::vector<Sample>& samples, double confidence = 0.95);

}  // namespace purlin::measure
