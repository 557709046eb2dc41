// SPDX-License-Identifier: Apache-2.0
// The forms of an expression against each other: the tree, and the steps that a lookup evaluates.
//
//   bench_expression        prints nanoseconds for a check of constraints, and the ratio
//
// The third form, the columns of tune/space, has its ratio in bench_space_build ("naive/build").
#include "model/expression/integer_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace {

using namespace purlin;

constexpr int kRounds = 15, kCalls = 200'000;

// The fastest round, in nanoseconds for one call.
template <class Call>
double measure(const Call& call) {
  double best = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call(i);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

}  // namespace

int main() {
  Scope constants;
  constants.set("BM", std::int64_t{128});
  constants.set("VECTOR", std::int64_t{4});
  constants.set("LANES", std::int64_t{8});
  fmt::print("{:44} {:>9} {:>9} {:>7}\n", "constraint", "tree ns", "steps ns", "ratio");
  for (const char* text : {"N % VECTOR == 0", "M % 3 == 0 and N % VECTOR == 0",
                           "ceil_div(M, BM) * LANES <= 4096", "M * N < 1000000000000"}) {
    const Result<Expression> expression = Expression::parse(text);
    IntegerProgram program;
    if (!expression.is_ok() || !program.add(*expression, {"M", "N"}, constants.lookup())) continue;
    volatile bool sink = false;
    Scope scope = constants;
    const double tree = measure([&](int i) {
      scope.set("M", std::int64_t{1024 + i % 7});
      scope.set("N", std::int64_t{4096});
      const Result<bool> holds = expression->evaluate_bool(scope.lookup());
      sink = holds.is_ok() && *holds;
    });
    const double steps = measure([&](int i) {
      const std::int64_t inputs[8] = {1024 + i % 7, 4096};
      sink = program.holds(inputs);
    });
    fmt::print("{:44} {:9.1f} {:9.2f} {:6.0f}x\n", text, tree, steps, tree / steps);
  }
  return 0;
}
