// SPDX-License-Identifier: Apache-2.0
// Products that the program asks cuBLAS and cuBLASLt for, seen by standing in for the libraries'
// entry points (interpose.h): while a window is open each call is a range of the RangeLog that says
// M, N, K, types and layout. A product that cuBLAS hands on to cuBLASLt is one range, the outer.
//
// The libraries' logging callbacks were the alternative: there is one slot, which may be the
// program's, their texts differ from version to version, and cuBLAS's does not tell the calling
// thread when the call ends. The stand-ins cost a few ns while no window is open.
//
// Not seen: libraries linked statically, functions that the program looked up before they were
// replaced, grouped products. One per process; install() is for one thread at a time, the stand-ins
// are [MT].
#pragma once

#include <string>

namespace purlin::profile::capture::cuda {

// Replaces the entry points of what is loaded and was not seen before. True once any is replaced.
// `reason`: why one that is loaded could not be.
bool install_gemm_calls(std::string& reason);

// Whether libraries were loaded since the last time this was asked.
bool libraries_changed();

}  // namespace purlin::profile::capture::cuda
