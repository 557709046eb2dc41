// SPDX-License-Identifier: Apache-2.0
// Problem: describes the operation of an op, for any kernel that computes it: its class, problem
// shape and element type. Its text, "M=4096,N=4096,K=1024", is KernelRow::shape and part of a cache
// key.
// Which dimensions a class has, and what they mean: docs/concepts/problem-shapes.md.
//
// problem_of reads what frameworks record of an op's inputs (PyTorch's Input Dims, types and
// concrete values), which is foreign and not trusted. What it does not find there it leaves out,
// and guesses nothing. The work a problem takes, FLOPs and bytes, is analyze/roofline/work.h. Pure
// functions.
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
  // "optimizer", "embedding", "fft", "communication", "other"; as KernelName::op_class.
  std::string_view op_class = "other";
  std::vector<Dimension> dimensions;  // empty: not known
  std::string dtype;                  // of the inputs: "bf16", "f32", …; "" unknown

  std::int64_t operator[](std::string_view name) const;  // 0 where absent
  bool empty() const { return dimensions.empty(); }
};

// One input of an op. A scalar has no dimensions; a list of tensors has its first member's, and
// those of all of them in members, where they were recorded.
struct OpInput {
  std::vector<std::int64_t> dimensions;
  std::string_view dtype;     // as the framework writes it: "c10::BFloat16", "float", "Scalar", ""
  std::string_view concrete;  // value of a scalar or a list: "[1, 1]", "True"; "" not recorded
  std::vector<std::vector<std::int64_t>> members = {};
};

// What the op computes, "other" without dimensions where no rule knows it. E.g. aten::addmm ->
// gemm M, N, K; aten::convolution -> conv N, C, H, W, K, R, S, P, Q and groups.
Problem problem_of(std::string_view op, const std::vector<OpInput>& inputs);
// One instruction of XLA as its HLO text has it, operands with their types:
// "%dot.4 = bf16[8,4]{1,0} dot(bf16[8,2] %a, bf16[2,4] %b), lhs_contracting_dims={1}, …".
Problem problem_of_hlo(std::string_view instruction);
// One collective: elements each rank sends and receives, and how many ranks there are (0 unknown).
Problem communication_problem(std::int64_t sent, std::int64_t received, std::int64_t ranks,
                              std::string_view framework_dtype);

// What torch.autograd.profiler.emit_nvtx writes into a range's name with record_shapes:
// "aten::mm, seq = 3, sizes = [[8, 2], [2, 4]]". Without sizes: no inputs, op is the name.
struct NvtxOp {
  std::string op;
  std::vector<OpInput> inputs;
};
NvtxOp op_from_nvtx(std::string_view range_name);

std::string to_text(const std::vector<Dimension>& dimensions);  // "M=4096,N=4096,K=1024"
// Nothing where the text is no problem shape.
std::vector<Dimension> dimensions_from_text(std::string_view text);
// "c10::BFloat16" -> "bf16", "float" -> "f32", "long int" -> "i64"; "" where unknown.
std::string_view dtype_of(std::string_view framework_name);
// Of the floating inputs, where all of them have one: "bf16"; "" otherwise.
std::string_view floating_dtype_of(const std::vector<OpInput>& inputs);
// Of what dtype_of returns: "bf16" -> 2, "f4e2m1" -> 0.5; 0 where unknown.
double bytes_per_element(std::string_view dtype);

}  // namespace purlin
