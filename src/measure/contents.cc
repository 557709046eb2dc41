// SPDX-License-Identifier: Apache-2.0
#include "measure/contents.h"

#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <thread>
#include <vector>

namespace purlin::measure {
namespace {

constexpr std::size_t kContentsPerThread = std::size_t{1} << 20;
constexpr std::size_t kMaxContentThreads = 16;

// SplitMix64 addressed by position: what Random(seed) yields as its i-th value, without the chain.
std::uint64_t random_at(std::uint64_t seed, std::uint64_t i) {
  return Random(seed + i * 0x9E3779B97F4A7C15u).next();
}

double uniform_at(std::uint64_t seed, std::uint64_t i) {
  return static_cast<double>(random_at(seed, i) >> 11) * 0x1.0p-53;
}

template <class T>
struct Store {
  void operator()(void* out, std::size_t i, double value) const {
    static_cast<T*>(out)[i] = static_cast<T>(value);
  }
};

// f16, bf16 and the integers, where the cost of the conversion is the model's.
struct StoreAny {
  Dtype dtype;
  std::size_t size;
  void operator()(void* out, std::size_t i, double value) const {
    store_element(dtype, static_cast<char*>(out) + i * size, value);
  }
};

double largest_integer(Dtype dtype) {
  switch (dtype) {
    case Dtype::kI8:
      return 127;
    case Dtype::kU8:
      return 255;
    case Dtype::kI16:
      return 32767;
    case Dtype::kU16:
      return 65535;
    case Dtype::kI32:
      return 2147483647.0;
    case Dtype::kU32:
      return 4294967295.0;
    default:
      return 0x1.0p53 - 1;  // 64-bit integers: as far as a double counts
  }
}

std::uint64_t iota_period(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16:
      return 256;
    case Dtype::kF16:
      return 2048;
    case Dtype::kF32:
      return std::uint64_t{1} << 24;
    case Dtype::kF64:
      return std::uint64_t{1} << 53;
    case Dtype::kF8E4m3:
      return 16;
    case Dtype::kF8E5m2:
      return 8;
    default:
      return static_cast<std::uint64_t>(largest_integer(dtype)) + 1;
  }
}

// Elements [first, last). Normal deviates come in pairs (Box-Muller) from the pair's own position.
template <class StoreElement>
void fill_range(const Argument& argument, std::uint64_t seed, std::size_t first, std::size_t last,
                const StoreElement& store, void* out) {
  const double a = argument.fill_a, b = argument.fill_b;
  switch (argument.fill) {
    case Argument::Fill::kUniform:
      if (is_floating(argument.dtype)) {
        for (std::size_t i = first; i < last; ++i) store(out, i, a + (b - a) * uniform_at(seed, i));
      } else {
        const double low = std::ceil(a), span = std::max(std::floor(b) - low + 1, 1.0);
        for (std::size_t i = first; i < last; ++i)
          store(out, i, low + std::floor(span * uniform_at(seed, i)));
      }
      break;
    case Argument::Fill::kNormal:
      for (std::size_t pair = first & ~std::size_t{1}; pair < last; pair += 2) {
        const double radius = std::sqrt(-2 * std::log1p(-uniform_at(seed, pair)));
        const double angle = 2 * std::numbers::pi * uniform_at(seed, pair + 1);
        const double deviates[] = {radius * std::cos(angle), radius * std::sin(angle)};
        for (std::size_t i = std::max(pair, first); i < std::min(pair + 2, last); ++i) {
          const double value = a + b * deviates[i - pair];
          store(out, i, is_floating(argument.dtype) ? value : std::round(value));
        }
      }
      break;
    case Argument::Fill::kConstant:
      for (std::size_t i = first; i < last; ++i) store(out, i, a);
      break;
    case Argument::Fill::kIota: {
      const std::uint64_t period = iota_period(argument.dtype);
      for (std::size_t i = first; i < last; ++i) store(out, i, static_cast<double>(i % period));
      break;
    }
  }
}

void fill_any(const Argument& argument, std::uint64_t seed, std::size_t first, std::size_t last,
              void* out) {
  if (argument.dtype == Dtype::kF32) {
    fill_range(argument, seed, first, last, Store<float>{}, out);
  } else if (argument.dtype == Dtype::kF64) {
    fill_range(argument, seed, first, last, Store<double>{}, out);
  } else {
    fill_range(argument, seed, first, last, StoreAny{argument.dtype, size_of(argument.dtype)}, out);
  }
}

}  // namespace

std::uint64_t contents_seed(std::uint64_t spec_seed, std::uint64_t extra_seed, std::size_t index) {
  std::uint64_t seed = Random(spec_seed).next();
  seed = Random(seed ^ extra_seed).next();
  return Random(seed + index).next();
}

void fill_contents(const Argument& argument, std::uint64_t seed, std::size_t count, void* out) {
  const std::size_t useful = (count + kContentsPerThread - 1) / kContentsPerThread;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t parts = std::max<std::size_t>(1, std::min({useful, cores, kMaxContentThreads}));
  std::vector<std::thread> threads;
  for (std::size_t part = 1; part < parts; ++part)
    threads.emplace_back([&, part] {
      fill_any(argument, seed, count * part / parts, count * (part + 1) / parts, out);
    });
  fill_any(argument, seed, 0, count / parts, out);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace purlin::measure
