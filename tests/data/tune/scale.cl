// out[i] = 0.5 * i, the pattern of fake devices, so that one spec serves them and real ones.
// WRONG and STRAY plant the mistakes that tuning must reject.
__kernel void scale(__global float* out, int n) {
  for (int i = 0; i < ITEMS; ++i) {
    int at = (get_group_id(0) * ITEMS + i) * get_local_size(0) + get_local_id(0);
    float value = 0.5f * at;
#if MISTAKE == 1
    if (at == n / 2) value = -value;
#elif MISTAKE == 2
    if (at == n - 1) out[n + 3] = value;
#elif MISTAKE == 3
    this does not compile
#endif
    if (at < n) out[at] = value;
  }
}
