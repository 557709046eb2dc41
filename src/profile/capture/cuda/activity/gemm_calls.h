// SPDX-License-Identifier: Apache-2.0
// Matrix products of cuBLAS and cuBLASLt. Replacements of the libraries' entry points
// (interpose.h) record each call as a range of the RangeLog while a window is open. The range's
// name has M, N, K, types and layout. A product that cuBLAS passes to cuBLASLt is only the outer
// range.
//
// The libraries' logging callbacks are no alternative. There is one slot, which may be the
// program's, and the texts differ between versions. cuBLAS's callback does not report the end of a
// call to the calling thread. A replacement takes a few ns while no window is open.
//
// Not seen: libraries linked statically, functions that the program looked up before they were
// replaced, grouped products. One per process; install_gemm_calls() is for one thread at a time,
// the replacements are [MT].
#pragma once

#include <string>

namespace purlin::profile::capture::cuda {

// Replaces the entry points of libraries loaded since the last call. True once any is replaced.
// `reason`: why those of a loaded library could not be replaced.
bool install_gemm_calls(std::string& reason);

// Whether libraries were loaded since the last call.
bool libraries_changed();

}  // namespace purlin::profile::capture::cuda
