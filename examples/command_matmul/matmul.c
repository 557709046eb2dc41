// SPDX-License-Identifier: Apache-2.0
// A matrix product on the processor, for `purlin tune` of a command: the compiler's options and the
// macro TILE are the config. Prints the time of each repetition and writes the product
// to product.bin, whose digest is the same for every right config.
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef TILE
#define TILE 8
#endif

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

// Integers, so that the order of the sum does not matter.
static void multiply(const int32_t* a, const int32_t* b, int32_t* c, int n) {
  for (int i0 = 0; i0 < n; i0 += TILE)
    for (int k0 = 0; k0 < n; k0 += TILE)
      for (int i = i0; i < i0 + TILE && i < n; ++i)
        for (int k = k0; k < k0 + TILE && k < n; ++k)
          for (int j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

int main(int count, char** arguments) {
  const int n = count > 1 ? atoi(arguments[1]) : 128;
  const size_t size = (size_t)n * (size_t)n;
  int32_t* a = malloc(size * sizeof *a);
  int32_t* b = malloc(size * sizeof *b);
  int32_t* c = malloc(size * sizeof *c);
  if (n < 1 || a == NULL || b == NULL || c == NULL) return 1;
  for (size_t i = 0; i < size; ++i) {
    a[i] = (int32_t)(i % 7);
    b[i] = (int32_t)(i % 5);
  }
  for (int repetition = 0; repetition < 5; ++repetition) {
    for (size_t i = 0; i < size; ++i) c[i] = 0;
    const double start = now_ns();
    multiply(a, b, c, n);
    printf("time: %.0f ns\n", now_ns() - start);
  }
  FILE* file = fopen("product.bin", "wb");
  if (file == NULL || fwrite(c, sizeof *c, size, file) != size) return 1;
  fclose(file);
  free(a);
  free(b);
  free(c);
  return 0;
}
