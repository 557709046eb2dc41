// SPDX-License-Identifier: Apache-2.0
// A matrix product of a library call as one text: the name of a range in the RangeLog. A row gets
// its problem shape from it, and a timeline the rest.
//
// "cublasLtMatmul, shape = M=512,N=384,K=256, dtype = bf16, layout = nt, ld = 256,256,384"
//
// M, N and K are those of row-major memory, as frameworks see it and
// docs/concepts/problem-shapes.md has it: cuBLAS's column-major m×n result is a row-major n×m one,
// its B the left operand. Pure functions; writing allocates nothing.
#pragma once

#include "profile/capture/ranges/op_text.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace purlin::profile::capture {

struct GemmFacts {
  const char* entry = "";  // the function that was called
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool row_major = false;
  bool transposed_a = false, transposed_b = false;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  // Purlin's names (model/problem/problem.h); "" where the library's type has none.
  const char *type_a = "", *type_b = "", *type_c = "";
  const char* compute = "";   // "" where it follows from the types
  const char* epilogue = "";  // "bias", "gelu", …; "" for none
};

void write_gemm(const GemmFacts& facts, OpText& out);

// From the text of write_gemm: "M=512,N=384,K=256" and "bf16"; "" for another text.
std::string gemm_shape(std::string_view text);
std::string gemm_dtype(std::string_view text);

}  // namespace purlin::profile::capture
