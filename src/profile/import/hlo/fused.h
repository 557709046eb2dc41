// SPDX-License-Identifier: Apache-2.0
// Fused: what the computation inside a fusion of XLA computes: a product, a reduction or work by
// element, how much of it, and what it reads and writes. What is not certain has no shape:
// scatters, several products, nested computations. Pure function; linear in the computation.
#pragma once

#include "profile/import/hlo/launches.h"
#include "profile/import/hlo/module.h"

namespace purlin::profile::hlo {

// All that does not depend on the fusion around it; the signature is of the computation alone.
// REQUIRES: a root.
Launch launch_of_fused(const Computation& fused);

}  // namespace purlin::profile::hlo
