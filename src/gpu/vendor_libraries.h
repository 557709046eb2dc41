// SPDX-License-Identifier: Apache-2.0
// Where NVIDIA's libraries may be: the loader's own path, CUDA's folders, and those of Python
// wheels in an active environment. Free functions over the environment and the file system, which
// they only read; a folder that does not exist is not listed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace purlin::gpu {

// Names for Library::open, best first: for ("nvrtc", {13, 12}) libnvrtc.so.13, …. $PURLIN_NVRTC, if
// set, names a file or a folder and comes first; the variable of "cublasLt" is $PURLIN_CUBLASLT.
std::vector<std::string> vendor_library_names(std::string_view name,
                                              const std::vector<int>& majors);

// Folders with cuda_runtime.h and cuda_fp16.h, for kernels that include them; may be empty.
std::vector<std::string> cuda_include_directories();

}  // namespace purlin::gpu
