extern "C" __global__ void work_reference(const float* x, float* y, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) y[at] = x[at];
}
