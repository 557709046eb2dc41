// SPDX-License-Identifier: Apache-2.0
// Diff: what got slower and what faster between two profiles, and how much of it is due to what.
//
// Rows are matched by kernel and shape, then by kernel, then by op and shape, then by op class;
// what is left is gone or new. Every row is in exactly one item, and an item's causes add up to its
// change: nothing is left over and nothing counts twice, so causes may be added up over items. The
// parts of count and duration are symmetric (each at the mean of the other), so that B against A is
// A against B with signs turned. Method and format: docs/formats/diff.md. Pure functions over
// values.
#pragma once

#include "analyze/report/report.h"
#include "base/json/json.h"
#include "base/output/terminal.h"
#include "model/profile/profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

enum class DiffUnit {
  kAuto,  // steps where both profiles have them, else the run
  kStep,
  kRun,
};

enum class Match {
  kKernelAndShape,  // same kernel, op, problem shape and element type
  kKernel,          // same kernel, other shapes
  kOpAndShape,      // same op, problem shape and element type, other kernels
  kOpClass,         // same op class, other kernels: what replaced what is a guess
  kNone,            // gone or new
};
std::string_view to_text(Match match);  // "kernel_and_shape"

// All in ns per unit (step or run). They add up to the change.
struct Causes {
  double count = 0;     // more or fewer launches
  double duration = 0;  // launches got longer or shorter; no other difference known
  double shape = 0;     // …because the problem changed

  double kernel = 0;              // …because another kernel does it
  double environment = 0;         // …as far as another GPU, driver or clock explains it
  double gone = 0, appeared = 0;  // time of kernels that only A, only B has

  double total() const { return count + duration + shape + kernel + environment + gone + appeared; }
  Causes& operator+=(const Causes& other);
};

struct DiffSide {    // of one item in one profile
  double count = 0;  // launches per unit
  double total = 0;  // ns per unit
  double error = 0;  // of the total, where launches were sampled: relative, 95 %
  double clock_mhz = 0;
  // Of the heaviest kernel; 0 where not known.
  double flops_per_s = 0, bytes_per_s = 0, occupancy = 0, tensor_share = 0;
  Sketch duration;                           // of all launches
  std::vector<std::string> kernels, shapes;  // unabridged names; heaviest first
  double mean() const { return count > 0 ? total / count : 0; }
};

struct DiffItem {
  std::string label;  // of the kernel, op or class
  std::string name;   // unabridged
  std::string_view op_class;
  std::string op, shape, dtype;  // where both sides agree
  Match match = Match::kNone;
  DiffSide a, b;
  double change = 0;  // ns per unit, b - a
  Causes causes;
  // 95 % interval of the change, for the spread between launches and the error of sampling alone:
  // two runs of the same program differ by more.
  double low = 0, high = 0;
  bool certain = false;          // the interval does not hold 0, and the change is no rounding
  std::vector<std::string> why;  // "GPU NVIDIA A100 -> NVIDIA H200", "M=1,N=2 -> M=4,N=2"
};

// One side as a whole; ns per unit.
struct DiffTotals {
  std::string path, command, build, recorded_at, source;
  std::vector<std::string> devices, drivers;
  double units = 1;     // steps, or 1
  double launches = 0;  // per unit
  double kernel = 0, copy = 0;
  double outside = 0;  // kernel time outside of the steps, in all: not compared
  double error = 0;    // of totals from windows of a sampled capture, relative, 95 %
  StepTime step;       // the mean step, where units are steps
  bool partial = false;
};

struct Diff {
  bool per_step = false;
  DiffTotals a, b;
  std::vector<DiffItem> items;   // largest change first
  std::vector<DiffItem> copies;  // memcpy and memset by kind, the same way
  Causes causes;                 // of all items
  double change = 0;             // of the time of all kernels; equals causes.total()
  std::vector<std::string> notes;
};

Result<Diff> diff_profiles(const Profile& a, const Profile& b, DiffUnit unit = DiffUnit::kAuto);

Json to_json(const Diff& diff);  // purlin.diff/1
std::string to_csv(const Diff& diff);
std::string render_diff(const Diff& diff, const Terminal& terminal, int top = 10);

}  // namespace purlin::analyze
