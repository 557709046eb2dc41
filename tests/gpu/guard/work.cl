#include "work.h"
__kernel void work(__global const float* x, __global float* y, int n) {
  const int at = get_global_id(0);
  if (at >= n) return;
  float a = x[at] * 1e-30f;
  CHAIN(a, x[at]);
  y[at] = x[at] + a;
}
