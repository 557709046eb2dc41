// SPDX-License-Identifier: Apache-2.0
// The draft of a kernel spec (docs/formats/spec.md) from what a source says about a kernel. What is
// guessed has a comment that begins with "check:". `purlin init` writes it.
//
// Pure functions over values.
#pragma once

#include "base/status.h"
#include "tune/draft/kernel_source.h"

#include <string>
#include <vector>

namespace purlin::tune {

struct SpecDraft {
  std::string text;  // TOML
  std::size_t parameters = 0;
  std::vector<std::string> checks;  // what a person should look at, in order
};

// `file`: the source as the spec names it. kInvalid where a spec cannot describe an argument.
Result<SpecDraft> draft_spec(const KernelSource& kernel, const std::string& file);

}  // namespace purlin::tune
