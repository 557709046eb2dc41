// SPDX-License-Identifier: Apache-2.0
// LibraryGuest: stored algorithms turned into the library's own structs inside a program that calls
// the library itself.
//
// The library is the one the program has loaded and the handle is the program's: a struct made by
// another copy of it would be nonsense. Thread-safety: [MT], as far as the library's own functions
// are. Failure: kInvalid for a config that the library does not accept, which is then not handed
// out; kNotFound where the program has not loaded the library.
#pragma once

#include "base/status.h"
#include "model/launch.h"
#include "model/library_operation.h"
#include "model/value.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace purlin::gpu {

// The program's own descriptors (cublasLtMatmulDesc_t, cublasLtMatrixLayout_t); all nullptr: of
// packed row-major matrices, as in the operation.
struct LibraryDescriptors {
  void *operation = nullptr, *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
};

class LibraryGuest {
 public:
  virtual ~LibraryGuest() = default;
  virtual std::string version() const = 0;
  virtual std::size_t algorithm_bytes() const = 0;
  // Writes algorithm_bytes() to `out`, checked for the descriptors and the workspace; returns what
  // workspace it needs.
  virtual Result<std::size_t> algorithm(const LibraryOperation& operation,
                                        const ProblemShape& problem,
                                        const LibraryDescriptors& descriptors, const Config& config,
                                        void* out) const = 0;
};

// `handle`: the program's cublasLtHandle_t.
Result<std::unique_ptr<LibraryGuest>> join_library(std::string_view library, void* handle);

}  // namespace purlin::gpu
