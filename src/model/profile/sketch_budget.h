// SPDX-License-Identifier: Apache-2.0
// SketchBudget: bounds the buckets of all sketches of a profile together. One sketch is small for
// all durations (28 KB). Hundreds of thousands are not small if a file was made to spread its
// durations. SketchBudget reports each duration that does not fit, and the caller adds all of them
// to one sketch. One owner, one thread.
#pragma once

#include "model/profile/sketch.h"

#include <algorithm>
#include <cstddef>

namespace purlin {

class SketchBudget {
 public:
  explicit SketchBudget(std::size_t buckets) : left_(buckets) {}

  // False, and nothing is added, where the sketch would have to grow and the budget is spent.
  bool add(Sketch& sketch, double ns, double weight = 1) {
    if (left_ == 0 && !within(sketch, ns, ns)) return false;
    const std::size_t before = sketch.buckets().size();
    sketch.add(ns, weight);
    take(sketch.buckets().size() - before);
    return true;
  }

  bool merge(Sketch& into, const Sketch& from) {
    if (left_ == 0 && !within(into, from.min_ns(), from.max_ns())) return false;
    const std::size_t before = into.buckets().size();
    into.merge(from);
    take(into.buckets().size() - before);
    return true;
  }

 private:
  static bool within(const Sketch& sketch, double low, double high) {
    return !sketch.empty() && low >= sketch.min_ns() && high <= sketch.max_ns();
  }
  void take(std::size_t buckets) { left_ -= std::min(left_, buckets); }

  std::size_t left_;
};

}  // namespace purlin
