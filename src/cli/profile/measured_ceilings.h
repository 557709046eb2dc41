// SPDX-License-Identifier: Apache-2.0
// The ceilings that `purlin doctor --ceilings` measured on this machine, for the devices of a
// profile. A free function; an unreadable file counts as missing.
#pragma once

#include "model/device/ceilings.h"
#include "model/device/device.h"

#include <vector>

namespace purlin::cli {

std::vector<Ceilings> measured_ceilings(const Environment& environment);

}  // namespace purlin::cli
