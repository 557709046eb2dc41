// SPDX-License-Identifier: Apache-2.0
__kernel void add_reference(__global const float* a, __global const float* b, __global float* out,
                            int n) {
  const int i = get_global_id(0);
  if (i < n) out[i] = a[i] + b[i];
}
