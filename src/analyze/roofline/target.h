// SPDX-License-Identifier: Apache-2.0
// Target: what a kernel can be expected to reach, before any work on it. No kernel reaches its
// roof: good products come to about 0.78 of the arithmetic peak, good streams to about 0.92 of the
// bandwidth (torchao's figures for the H100; an H200 here: 0.80 and 0.90). Pure functions.
#pragma once

#include "analyze/roofline/roofline.h"

namespace purlin::analyze {

struct TargetFractions {  // of what is attainable
  double compute = 0.78;
  double memory = 0.92;
};

struct Target {
  double fraction = 0;     // of the binding ceiling; 0 = the roof is not known
  double flops_per_s = 0;  // attainable x fraction; 0 where the kernel does no arithmetic
  double speedup = 1;      // from now to the target, at least 1
  double saved_share = 0;  // of its time: 1 - 1 / speedup
  bool reached() const { return fraction > 0 && speedup <= 1; }
};

bool is_compute_ceiling(const Roof& roof);
Target target_of(const Roof& roof, const TargetFractions& fractions = {});

}  // namespace purlin::analyze
