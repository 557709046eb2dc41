// SPDX-License-Identifier: Apache-2.0
// LibraryAppContext: stored algorithms of a vendor's library, used inside a program.
//
// The library is the one that the program has loaded, and the handle may be the program's: a struct
// from another copy of the library is not valid. A config is valid only if the library accepts it
// for the same product. Thread-safety: [MT]. Failure: kInvalid if the library refuses, kNotFound
// if the program has not loaded the library, kUnavailable in builds without its header.
#pragma once

#include "base/status.h"
#include "model/device/launch.h"
#include "model/expression/value.h"
#include "model/spec/library_operation.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace purlin::gpu {

// The program's own descriptors (cublasLtMatmulDesc_t, cublasLtMatrixLayout_t).
struct LibraryDescriptors {
  void *operation = nullptr, *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
};

struct LibraryPointers {
  const void *a = nullptr, *b = nullptr, *bias = nullptr;
  void *d = nullptr, *workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

// A product of packed row-major matrices with an algorithm chosen.
class LibraryPlan {
 public:
  virtual ~LibraryPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  // sizeof(cublasLtMatmulAlgo_t) bytes.
  virtual const void* algorithm() const = 0;
  // Asynchronous on a cudaStream_t. [MT]
  virtual Status launch(const LibraryPointers& pointers, void* stream) = 0;
};

class LibraryAppContext {
 public:
  virtual ~LibraryAppContext() = default;
  virtual std::string version() const = 0;
  virtual std::size_t algorithm_bytes() const = 0;
  // `config` nullptr: the library's own first choice.
  virtual Result<std::unique_ptr<LibraryPlan>> plan(const LibraryOperation& operation,
                                                    const ProblemShape& problem,
                                                    const Config* config) = 0;
  // Writes algorithm_bytes() to `out`, checked for the program's descriptors and within the
  // operation's workspace; returns what workspace it needs.
  virtual Result<std::size_t> algorithm(const LibraryOperation& operation,
                                        const LibraryDescriptors& descriptors, const Config& config,
                                        void* out) const = 0;
};

// `handle`: the program's cublasLtHandle_t; nullptr makes a separate one, on the current context.
Result<std::unique_ptr<LibraryAppContext>> join_library(std::string_view library, void* handle);

}  // namespace purlin::gpu
