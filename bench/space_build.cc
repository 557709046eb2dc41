// SPDX-License-Identifier: Apache-2.0
// Space construction: the four published T1 spaces, against checking every config of the Cartesian
// product with the same compiled constraints' expressions, in one run. Best of several repeats.
#include "base/time.h"
#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace purlin::tune {
namespace {

double seconds(const std::function<void()>& work, int repeats) {
  double best = 1e300;
  for (int i = 0; i < repeats; ++i) {
    const std::int64_t start = system_clock().monotonic_ns();
    work();
    best = std::min(best, static_cast<double>(system_clock().monotonic_ns() - start) * 1e-9);
  }
  return best;
}

// The textbook way: an odometer over the product, each constraint by the expression's own meaning.
std::size_t enumerate(const PublishedSpace& from) {
  std::vector<std::size_t> at(from.parameters.size());
  const auto lookup = [&](std::string_view name) -> const Value* {
    for (std::size_t i = 0; i < at.size(); ++i)
      if (from.parameters[i].name == name) return &from.parameters[i].values[at[i]];
    return nullptr;
  };
  std::size_t valid = 0;
  while (true) {
    valid += std::all_of(from.constraints.begin(), from.constraints.end(), [&](const auto& rule) {
      return rule.expression.evaluate_bool(lookup).value();
    });
    std::size_t place = at.size();
    while (place > 0 && ++at[place - 1] == from.parameters[place - 1].values.size())
      at[--place] = 0;
    if (place == 0) return valid;
  }
}

int run() {
  fmt::print("{:<14} {:>10} {:>9} {:>10} {:>14} {:>14} {:>12} {:>9}\n", "space", "cartesian",
             "valid", "build ms", "valid/s", "list all ms", "naive ms", "naive/build");
  bool correct = true;
  for (const PublishedSpace& published : published_spaces()) {
    Space space;
    const double build = seconds(
        [&] { space = build_space(published.parameters, published.constraints, {}).value(); }, 20);
    // Reading every config's values, so that nothing is left undone that a user would wait for.
    std::size_t sum = 0;
    Assignment values(published.parameters.size());
    const double list = seconds(
        [&] {
          for (std::size_t i = 0; i < space.size(); ++i) {
            space.assignment(i, values);
            sum += values.back();
          }
        },
        5);
    std::size_t counted = 0;
    const double full = seconds([&] { counted = enumerate(published); }, 1);
    correct &= space.size() == published.valid && counted == published.valid;
    fmt::print("{:<14} {:>10.0f} {:>9} {:>10.3f} {:>14.3e} {:>14.3f} {:>12.1f} {:>8.0f}x{}\n",
               published.name, published.cartesian, space.size(), build * 1e3,
               static_cast<double>(space.size()) / build, list * 1e3, full * 1e3, full / build,
               sum == static_cast<std::size_t>(-1) ? "!" : "");
  }
  if (!correct) fmt::print(stderr, "space_build: the counts are wrong\n");
  return correct ? 0 : 1;
}

}  // namespace
}  // namespace purlin::tune

int main() { return purlin::tune::run(); }
