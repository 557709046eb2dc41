// SPDX-License-Identifier: Apache-2.0
// Problem: what an op computes, whatever kernel does it: its class, its problem shape and its
// element type. Its text, "M=4096,N=4096,K=1024", is KernelRow::shape and part of a cache key.
//
// problem_of reads what frameworks record of an op's inputs (PyTorch's Input Dims, types and
// concrete values). The work a problem takes, FLOPs and bytes, is analyze/work.h. Pure functions;
// inputs are foreign and not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

struct Dimension {
  std::string name;  // "M"
  std::int64_t value = 0;
};

struct Problem {
  // "gemm", "conv", "attention", "norm", "softmax", "elementwise", "reduction", "copy", "layout",
  // "optimizer", "embedding", "communication", "other"; as KernelName::op_class.
  std::string_view op_class = "other";
  std::vector<Dimension> dimensions;  // empty: not known
  std::string dtype;                  // of the inputs: "bf16", "f32", …; "" unknown

  std::int64_t operator[](std::string_view name) const;  // 0 where absent
  bool empty() const { return dimensions.empty(); }
};

// One input of an op. A scalar has no dimensions; a list of tensors has its first member's.
struct OpInput {
  std::vector<std::int64_t> dimensions;
  std::string_view dtype;     // as the framework writes it: "c10::BFloat16", "float", "Scalar", ""
  std::string_view concrete;  // value of a scalar or a list: "[1, 1]", "True"; "" not recorded
};

// What the op computes, "other" without dimensions where no rule knows it. E.g. aten::addmm ->
// gemm M, N, K; aten::convolution -> conv N, C, H, W, K, R, S, P, Q and groups.
Problem problem_of(std::string_view op, const std::vector<OpInput>& inputs);

std::string to_text(const std::vector<Dimension>& dimensions);  // "M=4096,N=4096,K=1024"
// Nothing where the text is no problem shape.
std::vector<Dimension> dimensions_from_text(std::string_view text);
// "c10::BFloat16" -> "bf16", "float" -> "f32", "long int" -> "i64"; "" where unknown.
std::string_view dtype_of(std::string_view framework_name);

}  // namespace purlin
