// SPDX-License-Identifier: Apache-2.0
// Names that compilers make: kernels outlined from OpenMP and OpenACC regions, Numba's tags,
// mangled names that no demangler takes whole. Private to analyze/kernel_name. Pure functions over
// foreign text.
#pragma once

#include "analyze/kernel_name/kernel_name.h"

#include <string>
#include <string_view>

namespace purlin::analyze {

// As base/text's demangle, also for names with a suffix (".kd"), and for names that were cut: of
// these the namespaces and the name. Other texts come back unchanged.
std::string readable_symbol(std::string_view recorded);

// "copy[abi:v1,cw51c…](Array<…>)" -> "copy(Array<…>)": what Numba adds to tell versions apart.
// True where there was one.
bool remove_numba_tags(std::string& name);

// Fills brief, family and `outlined` of a kernel that was made of a region of a function. False
// for other names.
bool read_outlined(std::string_view symbol, KernelName& out);

}  // namespace purlin::analyze
