// SPDX-License-Identifier: Apache-2.0
// out = a + b with a bug planted for each value of BUG; see README.md.

#if BUG == 4
#error "the planted compile error"
#endif

__kernel void add(__global const float* a, __global const float* b, __global float* out, int n) {
  const int i = get_global_id(0);
  if (i >= n) return;
#if BUG == 1  // wrong: one element is off by a little
  out[i] = a[i] + b[i] + (i == n / 2 ? 0.01f : 0.0f);
#elif BUG == 2  // the last element is never written
  if (i != n - 1) out[i] = a[i] + b[i];
#elif BUG == 3  // one element behind the end is written
  out[i] = a[i] + b[i];
  if (i == n - 1) out[n] = 1.0f;
#elif BUG == 5  // never ends
  volatile int more = 1;
  while (more) out[i] = a[i];
#elif BUG == 6  // takes the process down
  out[i] = a[i] + b[i] + *(volatile __global const float*)(size_t)(8 + i % 2);
#elif BUG == 7  // an input is overwritten; the result is right
  out[i] = a[i] + b[i];
  ((__global float*)a)[i] = 0.0f;
#elif BUG == 8  // not a number instead of a number
  out[i] = i == 3 ? nan(0u) : a[i] + b[i];
#else
  out[i] = a[i] + b[i];
#endif
}
