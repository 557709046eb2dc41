#include "work.h"
extern "C" __global__ void work(const float* x, float* y, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  float a = x[at] * 1e-30f;
  CHAIN(a, x[at]);
  y[at] = x[at] + a;
}
