// SPDX-License-Identifier: Apache-2.0
#include "measure/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

namespace purlin::measure {
namespace {

template <class T>
T element(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

struct RealEqual {
  Tolerance tolerance;
  bool operator()(double got, double expected) const {
    // Infinities make the difference NaN or the bound infinite, so they are compared first.
    if (got == expected) return true;
    if (std::isnan(expected)) return std::isnan(got);
    if (std::isinf(expected)) return false;
    return std::fabs(got - expected) <= tolerance.atol + tolerance.rtol * std::fabs(expected);
  }
};

template <class T>
struct IntegerEqual {
  Tolerance tolerance;
  bool operator()(T got, T expected) const {
    if (got == expected) return true;
    using U = std::make_unsigned_t<T>;
    const U distance = got > expected
                           ? static_cast<U>(static_cast<U>(got) - static_cast<U>(expected))
                           : static_cast<U>(static_cast<U>(expected) - static_cast<U>(got));
    return static_cast<double>(distance) <= tolerance.atol;
  }
};

// Calls visit(load, equal) with the element type's own reader and equality.
template <class Visit>
auto with_type(Dtype dtype, Tolerance tolerance, Visit visit) {
  const auto integer = [&]<class T>(T) {
    return visit([](const void* data, std::size_t i) { return element<T>(data, i); },
                 IntegerEqual<T>{tolerance});
  };
  switch (dtype) {
    case Dtype::kI8:
      return integer(std::int8_t{});
    case Dtype::kU8:
      return integer(std::uint8_t{});
    case Dtype::kI16:
      return integer(std::int16_t{});
    case Dtype::kU16:
      return integer(std::uint16_t{});
    case Dtype::kI32:
      return integer(std::int32_t{});
    case Dtype::kU32:
      return integer(std::uint32_t{});
    case Dtype::kI64:
      return integer(std::int64_t{});
    case Dtype::kU64:
      return integer(std::uint64_t{});
    case Dtype::kF32:
      return visit(
          [](const void* data, std::size_t i) -> double { return element<float>(data, i); },
          RealEqual{tolerance});
    case Dtype::kF64:
      return visit([](const void* data, std::size_t i) { return element<double>(data, i); },
                   RealEqual{tolerance});
    case Dtype::kF16:
    case Dtype::kBf16:
    case Dtype::kF8E4m3:
    case Dtype::kF8E5m2:
      break;
  }
  const std::size_t size = size_of(dtype);
  return visit(
      [dtype, size](const void* data, std::size_t i) {
        return load_element(dtype, static_cast<const char*>(data) + i * size);
      },
      RealEqual{tolerance});
}

// Elements whose median is taken, at even distances.
constexpr std::size_t kMedianElements = std::size_t{1} << 16;
constexpr double kMedians = 10;

}  // namespace

namespace {

// Below this a thread costs more than it saves.
constexpr std::size_t kElementsPerThread = std::size_t{1} << 19;
constexpr std::size_t kMaxThreads = 16;

// Elements that are compared together, without a branch in between.
constexpr std::size_t kBlock = 4096;

// Whether these are finite and all equal. False is no answer.
bool are_clearly_close(const void* got, const void* expected, std::size_t first, std::size_t last,
                       Tolerance tolerance) {
  constexpr double kLimit = std::numeric_limits<float>::max();
  unsigned apart = 0;
  for (std::size_t i = first; i < last; ++i) {
    const double a = element<float>(got, i), b = element<float>(expected, i);
    const double difference = std::fabs(a - b);
    const double bound = tolerance.atol + tolerance.rtol * std::fabs(b);
    // Infinities and NaN fail the second.
    apart |= static_cast<unsigned>(!(difference <= bound)) |
             static_cast<unsigned>(!(std::fabs(a) + std::fabs(b) <= kLimit));
  }
  return apart == 0;
}

Difference compare_range(Dtype dtype, const void* got, const void* expected, std::size_t first,
                         std::size_t last, Tolerance tolerance) {
  Difference difference;
  const std::size_t size = size_of(dtype);
  const auto bytes = [&](const void* data) {
    return static_cast<const char*>(data) + first * size;
  };
  if (std::memcmp(bytes(got), bytes(expected), (last - first) * size) == 0) return difference;
  if (dtype == Dtype::kF32 && last - first > kBlock) {
    for (std::size_t at = first; at < last; at += kBlock) {
      const std::size_t end = std::min(at + kBlock, last);
      if (are_clearly_close(got, expected, at, end, tolerance)) continue;
      const Difference part = compare_range(dtype, got, expected, at, end, tolerance);
      if (difference.count == 0) difference.first = part.first;
      difference.count += part.count;
    }
    return difference;
  }
  with_type(dtype, tolerance, [&](auto load, auto equal) {
    for (std::size_t i = first; i < last; ++i) {
      // Most 16-bit reals agree in every bit, and decoding them is what costs.
      if (size == 2 && element<std::uint16_t>(got, i) == element<std::uint16_t>(expected, i))
        continue;
      if (equal(load(got, i), load(expected, i))) continue;
      if (difference.count++ == 0) difference.first = i;
    }
    return 0;
  });
  return difference;
}

}  // namespace

std::optional<Difference> compare(Dtype dtype, const void* got, const void* expected,
                                  std::size_t count, Tolerance tolerance) {
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t parts =
      std::clamp<std::size_t>(count / kElementsPerThread, 1, std::min(cores, kMaxThreads));
  std::vector<Difference> found(parts);
  const auto run = [&](std::size_t part) {
    found[part] = compare_range(dtype, got, expected, count * part / parts,
                                count * (part + 1) / parts, tolerance);
  };
  std::vector<std::thread> threads;
  for (std::size_t part = 1; part < parts; ++part) threads.emplace_back(run, part);
  run(0);
  for (std::thread& thread : threads) thread.join();
  Difference all;
  for (const Difference& part : found) {
    if (all.count == 0) all.first = part.first;
    all.count += part.count;
  }
  if (all.count == 0) return std::nullopt;
  return all;
}

double magnitude_of(Dtype dtype, const void* data, std::size_t count) {
  if (!is_floating(dtype)) return 0;
  double squares = 0, finite = 0;
  std::vector<double> sizes;
  const std::size_t step = count / kMedianElements + 1;
  with_type(dtype, {}, [&](auto load, auto) {
    for (std::size_t i = 0; i < count; ++i) {
      const double size = std::fabs(static_cast<double>(load(data, i)));
      if (!std::isfinite(size)) continue;
      squares += size * size;
      finite += 1;
      if (i % step == 0 && size > 0) sizes.push_back(size);
    }
    return 0;
  });
  if (sizes.empty()) return 0;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return std::min(std::sqrt(squares / finite), kMedians * *middle);
}

bool is_all_nan(Dtype dtype, const void* data, std::size_t count) {
  if (!is_floating(dtype) || count == 0) return false;
  return with_type(dtype, {}, [&](auto load, auto) {
    for (std::size_t i = 0; i < count; ++i)
      if (!std::isnan(static_cast<double>(load(data, i)))) return false;
    return true;
  });
}

double largest_difference(Dtype dtype, const void* got, const void* expected, std::size_t count) {
  double largest = 0;
  with_type(dtype, {}, [&](auto load, auto) {
    for (std::size_t i = 0; i < count; ++i) {
      const double a = static_cast<double>(load(got, i));
      const double b = static_cast<double>(load(expected, i));
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double difference = std::fabs(a - b);
      largest = std::isfinite(difference) ? std::max(largest, difference)
                                          : std::numeric_limits<double>::infinity();
    }
    return 0;
  });
  return largest;
}

bool hides_poison(Dtype dtype, const void* expected, std::size_t count, std::uint8_t poison,
                  Tolerance tolerance) {
  unsigned char unwritten[16];
  std::memset(unwritten, poison, sizeof unwritten);
  return with_type(dtype, tolerance, [&](auto load, auto equal) {
    const auto value = load(unwritten, 0);
    for (std::size_t i = 0; i < count; ++i)
      if (equal(value, load(expected, i))) return true;
    return false;
  });
}

std::optional<std::size_t> find_poison(Dtype dtype, const void* data, std::size_t count,
                                       std::uint8_t poison) {
  const std::size_t size = size_of(dtype);
  unsigned char unwritten[16];
  std::memset(unwritten, poison, sizeof unwritten);
  const char* bytes = static_cast<const char*>(data);
  for (std::size_t i = 0; i < count; ++i)
    if (std::memcmp(bytes + i * size, unwritten, size) == 0) return i;
  return std::nullopt;
}

std::string multi_index_text(std::size_t flat, const std::vector<std::int64_t>& extents) {
  if (extents.size() < 2) return "";
  std::string text;
  for (std::size_t d = extents.size(); d-- > 0;) {
    const std::size_t extent = static_cast<std::size_t>(extents[d]);
    text = fmt::format("{}{}", flat % extent, text.empty() ? "" : "," + text);
    flat /= extent;
  }
  return "[" + text + "]";
}

std::string element_text(Dtype dtype, const void* data, std::size_t index) {
  return with_type(dtype, {}, [&](auto load, auto) {
    const auto value = load(data, index);
    if constexpr (std::is_floating_point_v<std::decay_t<decltype(value)>>) {
      return fmt::format("{:.9g}", value);
    } else {
      return fmt::format("{}", +value);
    }
  });
}

}  // namespace purlin::measure
