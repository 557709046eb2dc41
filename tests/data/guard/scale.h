// Zero, in `steps` dependent multiply-adds that no compiler may drop or reorder.
inline float chain(float value, int steps) {
  float a = value * 1e-30f;
  for (int i = 0; i < steps; ++i) a = fma(a, 0.5f, 1e-30f * value);
  return a;
}
