// SPDX-License-Identifier: Apache-2.0
// T1: the tuning community's input schema (JSON), as a KernelSpec. docs/formats/t1.md says what is
// read and what is refused.
//
// T1 brings no reference kernel: outputs are compared with those of the default config. Pure
// function over the text; errors are kInvalid and name file and member.
#pragma once

#include "base/status.h"
#include "model/spec/spec.h"

#include <string>
#include <string_view>

namespace purlin {

// kSpace reads parameters, conditions and the problem size only: neither the kernel's source nor
// how it is launched, which a recording does not need.
Result<KernelSpec> parse_t1(std::string_view json, const std::string& path, SpecUse use,
                            const SourceReader& read);

}  // namespace purlin
