// SPDX-License-Identifier: Apache-2.0
// The tool's own version, as every document carries it.
#pragma once

namespace purlin {

const char* version();  // "0.1.0"

}  // namespace purlin
