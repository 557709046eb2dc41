// SPDX-License-Identifier: Apache-2.0
// Names that are a list of properties, one dialect per library: nvjet, XMMA, cuBLAS and cuDNN
// before them, CUTLASS, FlashAttention, Tensile, MIOpen, NCCL, …. Private to analyze/kernel_name.
// Pure functions over foreign text.
#pragma once

#include "analyze/kernel_name/kernel_name.h"
#include "analyze/kernel_name/text.h"

#include <string_view>

namespace purlin::analyze {

// Fills what the first dialect that knows the name reads in it, brief and arguments with it where
// they get shorter by that. False where none knows it.
bool read_dialect(const NameParts& parts, KernelName& out);

// The two halves of the table: names made of tokens, and C++ templates.
bool read_token_dialect(std::string_view name, KernelName& out);
bool read_template_dialect(const NameParts& parts, KernelName& out);

std::string_view element_type(std::string_view token);  // "fp16", "e4m3", "half_t" -> dtype or ""

}  // namespace purlin::analyze
