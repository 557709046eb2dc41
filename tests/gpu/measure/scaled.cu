// SPDX-License-Identifier: Apache-2.0
// A kernel that NVRTC cannot take: it includes headers of the host, and is a template in a namespace.
#include <cuda_fp16.h>

#include <algorithm>
#include <vector>

#include "scaled.h"

namespace sample {
template <class T, int ITEMS, bool TWICE>
__global__ void scaled(const T* x, T* out, int n) {
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS;
  for (int i = first; i < std::min(first + ITEMS, n); ++i) out[i] = x[i] * T(TWICE ? 2 : kFactor);
}
}  // namespace sample
