// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace purlin {

const char* version() { return PURLIN_VERSION; }

}  // namespace purlin
