// SPDX-License-Identifier: Apache-2.0
// Platform: the API of a program, the kind of its device and its framework, as far as the profile
// shows them, and the advice that fits them. An instruction of a remedy that begins with the name
// of an API or a framework is for its users alone. A remedy without an instruction that fits is not
// recommended.
//
// Values and pure functions.
#pragma once

#include "analyze/advise/advice.h"
#include "analyze/report/report.h"
#include "model/profile/profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct Platform {
  enum class Api { kCuda, kHip, kOpencl };
  Api api = Api::kCuda;
  bool cpu = false;    // every device is a processor: its memory is the host's
  bool torch = false;  // PyTorch's kernels, ops or trace were seen
  bool jax = false;    // XLA's kernels or programs were seen
  int arch = 0;        // of the oldest CUDA device, 80 for sm_80; 0: not known
};
// `rows` are those of the profile.
Platform platform_of(const Profile& profile, const std::vector<KernelStat>& rows);

// Whether an instruction such as "PyTorch: …" or "OpenCL: …" is for this platform; others always
// are. One that needs TF32, bfloat16, FP8 or asynchronous copies is not for a device without them.
bool fits(const Platform& platform, std::string_view instruction);

// What the change's kernel would be written in: "triton" where its blocks say enough, the device's
// own language where threads, barriers or shared memory are arranged; "" where none is written.
std::string_view route_of(const Platform& platform, const Intervention& one);

// Keeps the instructions that fit, and the interventions that have one left.
void keep_what_fits(const Platform& platform, std::vector<Intervention>& interventions);

}  // namespace purlin::analyze
