// SPDX-License-Identifier: Apache-2.0
// Arm: one of the two things a gate compares, as a source of fresh processes.
//
// What an arm is made of is its own business: kernels of a suite under two sets of sources, a
// command at two revisions, one binary under two environments. The gate knows three facts of it:
// how it is made ready, which items a process of it measures, and what one fresh process said.
// Owned by its caller. Thread-safety: belongs to one thread. Failure: kFailed is the arm's own
// fault and becomes a verdict on the items concerned; any other code means that the tool or the
// machine cannot go on, and ends the comparison.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "guard/gate/samples.h"

#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

namespace purlin::guard {

// What is measured: items of equal names in both arms are the same item.
struct Item {
  std::string kernel;
  std::string shape;    // "M=512,N=512"; "" where not known
  std::string variant;  // tells apart what kernel and shape do not: the config asked for; may be ""

  std::string text() const;
  bool operator==(const Item& other) const = default;
  bool operator<(const Item& other) const {
    return std::tie(kernel, shape, variant) < std::tie(other.kernel, other.shape, other.variant);
  }
};

// What one process said of one item.
struct ItemReading {
  Item item;
  Status status;  // kFailed: it was not measured, and why
  ProcessReading process;
};
using Readings = std::vector<ItemReading>;

class Arm {
 public:
  virtual ~Arm() = default;
  // For people: "HEAD~1 (3f2a9c1)", "the baseline of 2026-11-20".
  virtual std::string label() const = 0;
  // All that happens once and is not timed, such as finding the items. Called once, first.
  virtual Status prepare() = 0;
  // After prepare(): what it can measure, and an id of all that decides what it runs (code,
  // configs, command, environment), by which a resumed comparison knows that it is the same one.
  virtual const std::vector<Item>& items() const = 0;
  virtual std::string fingerprint() const = 0;
  // What a reader needs to run it again; goes into the report.
  virtual Json record() const = 0;

  // Starts one fresh process that measures `wanted`, in this order where it can choose, and waits
  // for it. Further items may come back; one of `wanted` that does not has failed.
  virtual Result<Readings> launch(const std::vector<Item>& wanted) = 0;
  // Runs `wanted` once before anything counts: compiles, checks outputs against the reference where
  // there is one. The times are not used.
  virtual Result<Readings> rehearse(const std::vector<Item>& wanted) { return launch(wanted); }
  // The most items that one process should measure.
  virtual std::size_t most_per_launch() const { return SIZE_MAX; }
};

}  // namespace purlin::guard
