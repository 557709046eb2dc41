// SPDX-License-Identifier: Apache-2.0
// The make_ function of each verb, defined in the verb's own file.
#pragma once

#include <memory>

namespace purlin::cli {

class Command;

}  // namespace purlin::cli
