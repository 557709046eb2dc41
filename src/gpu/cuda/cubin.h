// SPDX-License-Identifier: Apache-2.0
// The registers, stack and shared memory of a kernel, from its cubin alone, before a driver loads
// it.
//
// The image is not trusted: each offset is checked against its size. Pure functions. Failure:
// nullopt for what is no cubin, or does not describe that kernel.
#pragma once

#include "gpu/device.h"

#include <optional>
#include <string_view>

namespace purlin::gpu {

std::optional<Resources> cubin_resources(std::string_view image, std::string_view entry);

}  // namespace purlin::gpu
