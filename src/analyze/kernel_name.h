// SPDX-License-Identifier: Apache-2.0
// What a kernel's name tells: a short form for people, who wrote it (family) and what it does (op
// class). Names are those of CUDA, HIP and OpenCL programs, mangled or not. Rules are tables in
// kernel_name.cc; a name no rule knows is family "custom", op class "other". Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct KernelName {
  std::string full;  // demangled, unabridged
  // Without return type, parameters, common namespaces and templates; what PyTorch's elementwise
  // and reduction kernels apply is kept, in words: "vectorized_elementwise add<float>".
  std::string brief;
  std::string arguments;  // template arguments as written, "" if none; tells namesakes apart
  std::string_view
      family;  // "pytorch", "cublas", "cudnn", "cutlass", "triton", "nccl", …, "custom"
  // "gemm", "conv", "attention", "norm", "softmax", "elementwise", "reduction", "copy", "layout",
  // "optimizer", "embedding", "communication", "other".
  std::string_view op_class;
};

KernelName describe_kernel(std::string_view recorded);

// Labels for different kernels whose brief names are the same: each with those of its template
// arguments, shortened, in which not all agree, and with a number where that does not tell them
// apart. In the order given.
std::vector<std::string> tell_apart(const std::vector<const KernelName*>& namesakes);

}  // namespace purlin::analyze
