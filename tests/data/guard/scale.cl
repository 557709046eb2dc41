// y = x, after STEPS rotations of a value that does not reach it: only the time depends on STEPS.
#include "scale.h"

__kernel void scale(__global const float* x, __global float* y, int n) {
  const int i = get_global_id(0);
  if (i < n) y[i] = x[i] + chain(x[i], STEPS);
}
