// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void spin_reference(const float* x, float* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = x[blockIdx.x];
}
