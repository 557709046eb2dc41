// SPDX-License-Identifier: Apache-2.0
// Kernels for tests of the rules, by kind, and readers of one rule's advice. Tests only.
#pragma once

#include "analyze/advise/testing.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::analyze {

inline constexpr double kPeak = 989.4e12;  // bf16 of an H200
inline constexpr int kSteps = 12;
inline constexpr const char* kTensorGemm = "nvjet_tst_128x256_64x4_1x2_h_bz_NNT";

inline double pointwise_time(double n, double share) { return 8 * n / kBandwidth * 1e9 / share; }

inline KernelRow product(std::string shape, const char* name = kTensorGemm) {
  return advised_row(name, "aten::mm", std::move(shape), "bf16");
}
inline KernelRow functor(const std::string& what, std::string shape, const char* dtype = "f32") {
  const std::string name = "void at::native::vectorized_elementwise_kernel<4, at::native::" + what +
                           "Functor<float>, std::array<char*, 2ul> >(int)";
  return advised_row(name.c_str(), ("aten::" + what).c_str(), std::move(shape), dtype);
}
inline KernelRow reduction(std::string shape, const char* dtype = "f32") {
  return advised_row(
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
      "at::native::func_wrapper_t<float, sum_functor<float> > > >()",
      "aten::sum", std::move(shape), dtype);
}
inline KernelRow softmax(std::string shape, const char* dtype = "bf16") {
  return advised_row("void cunn_SoftMaxForward<8, c10::BFloat16, float>()", "aten::_softmax",
                     std::move(shape), dtype);
}
inline KernelRow conversion(std::string shape) {
  KernelRow out = advised_row(
      "void at::native::unrolled_elementwise_kernel<at::native::"
      "direct_copy_kernel_cuda(at::TensorIteratorBase&)>()",
      "aten::copy_", std::move(shape), "f32");
  return out;
}
// An op of known inputs around what it launches.
template <class Body>
void with_inputs(Program& program, const char* op, const char* shape, Body body) {
  program.within(op, body);
  TimelineBuilder& builder = program.builder();
  builder.profile.timeline.ops.back().shape = builder.name(shape);
}
inline KernelRow with_counters(KernelRow row,
                               std::vector<std::pair<const char*, double>> counters) {
  for (const auto& [name, value] : counters) row.counters.push_back({name, value, 1});
  return row;
}
inline Interval3 share_of(const Advice& advice, std::string_view id) {
  const Intervention* one = find(advice, id);
  return one != nullptr ? one->saved_share : Interval3{};
}
inline bool says(const Intervention* one, std::string_view words) {
  if (one == nullptr) return false;
  for (const Evidence& item : one->evidence)
    if ((item.what + ": " + item.value).find(words) != std::string::npos) return true;
  return false;
}

}  // namespace purlin::analyze
