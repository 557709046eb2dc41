// Steps beyond STEPS: what guard_gpu.sh plants.
#define EXTRA 0

// A value too small to reach the sum it is added to, after so many dependent multiply-adds.
#define CHAIN(a, value) \
  for (int i = 0; i < STEPS + EXTRA; ++i) a = fma(a, 0.5f, 1e-30f * (value))
