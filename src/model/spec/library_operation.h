// SPDX-License-Identifier: Apache-2.0
// LibraryOperation: what a spec with a [library] asks a vendor's library to compute, without its
// extents: D = epilogue(A * B), row-major, D of M x N.
//
// A is stored as M x K (K x M where transpose_a), B as K x N (N x K where transpose_b). text() is
// the canonical form, which parse() reads back and which is the spec's source: it decides the
// source hash. Thread-safety: value type.
#pragma once

#include "base/status.h"
#include "model/problem/dtype.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

struct LibraryOperation {
  std::string library = "cublaslt";
  Dtype a = Dtype::kBf16, b = Dtype::kBf16, d = Dtype::kBf16;
  bool transpose_a = false, transpose_b = false;
  bool batched = false;           // a further dimension BATCH: so many matrices, one after another
  std::string compute = "f32";    // "f32", "tf32", "i32", "f64"
  std::string epilogue = "none";  // "none", "bias", "relu", "gelu", "relu_bias", "gelu_bias"
  std::int64_t workspace_bytes = 0;  // the most an algorithm may use

  bool has_bias() const;
  std::string text() const;
  // "cublaslt-nt-bf16-bf16-f32-bias": the name of its spec. Programs find its entries by this name,
  // independent of the spec's author. The workspace is left out: each algorithm reports its need.
  std::string label() const;
  bool operator==(const LibraryOperation&) const = default;

  // kInvalid says which combination of types the library does not have.
  Status check() const;
  static Result<LibraryOperation> parse(std::string_view text);
};

// What a spec that says only `a` means.
Dtype default_result(Dtype a);
std::string default_compute(Dtype a);

// What each is, for messages and `did you mean`.
const std::vector<std::string>& library_computes();
const std::vector<std::string>& library_epilogues();

// The rest of the spec that an operation represents, as TOML (kernel, parameters, launch,
// arguments, reference, tolerance, work), and the source of its reference in CUDA C++.
struct LibrarySpecText {
  std::string toml;
  std::string reference;
};
inline constexpr const char* kLibraryReferenceFile = "<library reference>";
inline constexpr const char* kLibraryOperationFile = "<library operation>";
LibrarySpecText library_spec_text(const LibraryOperation& operation);

// Parameters of a cuBLASLt algorithm, as the library's own attributes name them.
const std::vector<std::string>& library_parameters();

// The allowed difference of an element of D, in addition to rtol: sums of K products round more as
// K grows.
double library_rtol(const LibraryOperation& operation);
double library_tolerance(const LibraryOperation& operation, std::int64_t k);

}  // namespace purlin
