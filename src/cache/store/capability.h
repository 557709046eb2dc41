// SPDX-License-Identifier: Apache-2.0
// The capability to store configs: whether the directory of the cache is writable. A free function
// that only looks and creates nothing; no failure.
#pragma once

#include "model/device/capability.h"

namespace purlin::cache {

Capability examine_directory();

}  // namespace purlin::cache
