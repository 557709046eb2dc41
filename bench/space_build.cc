// SPDX-License-Identifier: Apache-2.0
// Space construction: the four published T1 spaces, against checking every config of the Cartesian
// product with the same constraints' expressions, in one run. Best of several repeats. Then spaces
// that no list could hold: what counting, drawing and stepping cost there.
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

// 10^`dice` combinations, tied together by their sum.
PublishedSpace dice(std::size_t count) {
  PublishedSpace space{fmt::format("dice{}", count)};
  std::string sum;
  for (std::size_t i = 0; i < count; ++i) {
    space.knob(fmt::format("d{}", i), steps(0, 9, 1));
    sum += fmt::format("{}d{}", i == 0 ? "" : " + ", i);
  }
  return space.rule(fmt::format("{} <= {}", sum, 3 * count));
}

// Tiles of a blocked tensor contraction: products of sizes bound by threads and shared memory, each
// size dividing the one above; 7^15 combinations.
PublishedSpace contraction() {
  PublishedSpace space{"contraction"};
  std::string block, elements, bytes;
  for (const char* axis : {"m", "n", "k", "p", "q"}) {
    for (const char* level : {"block", "warp", "thread"})
      space.knob(fmt::format("{}_{}", axis, level), {1, 2, 4, 8, 16, 32, 64});
    space.rule(fmt::format("{0}_block % {0}_warp == 0 and {0}_warp % {0}_thread == 0", axis));
    block += fmt::format("{}{}_block // {}_thread", block.empty() ? "" : ") * (", axis, axis);
    bytes += fmt::format("{}{}_block", bytes.empty() ? "" : " * ", axis);
  }
  return space.rule(fmt::format("32 <= ({}) <= 1024", block))
      .rule(fmt::format("{} * 4 <= 49152", bytes));
}

void run_large(const PublishedSpace& published) {
  Space space;
  const double build = seconds(
      [&] { space = build_space(published.parameters, published.constraints, {}).value(); }, 3);
  Random random(1);
  constexpr std::size_t kDrawn = 1000;
  std::vector<std::size_t> drawn;
  const double sample = seconds([&] { drawn = space.sample(kDrawn, random); }, 3);
  std::size_t sum = 0;
  const auto per_config = [&](const auto& operation) {
    return 1e6 / kDrawn *
           seconds(
               [&] {
                 for (const std::size_t i : drawn) sum += operation(i);
               },
               3);
  };
  const double find = per_config([&](std::size_t i) { return *space.find(space.config(i)); });
  const double neighbours = per_config([&](std::size_t i) { return space.neighbours(i).size(); });
  const double adjacent = per_config([&](std::size_t i) { return space.adjacent(i).size(); });
  fmt::print("{:<14} {:>10.3g} {:>9.4g}{} {:>10.1f} {:>12.2f} {:>12.2f} {:>12.2f} {:>12.2f}{}\n",
             published.name, published.cartesian, static_cast<double>(space.size()),
             space.is_exact() ? " " : "~", build * 1e3, sample * 1e6 / kDrawn, find, neighbours,
             adjacent, sum == 0 ? "!" : "");
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
  fmt::print("\n{:<14} {:>10} {:>10} {:>10} {:>12} {:>12} {:>12} {:>12}\n", "space", "cartesian",
             "valid", "build ms", "draw us", "config+find", "neighbours", "adjacent us");
  for (const PublishedSpace& large : {dice(12), dice(18), contraction()}) run_large(large);
  if (!correct) fmt::print(stderr, "space_build: the counts are wrong\n");
  return correct ? 0 : 1;
}

}  // namespace
}  // namespace purlin::tune

int main() { return purlin::tune::run(); }
