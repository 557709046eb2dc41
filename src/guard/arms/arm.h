// SPDX-License-Identifier: Apache-2.0
// Arm: one of the two sides that a gate compares, as a source of fresh processes.
//
// Arms differ inside: kernels of a suite under two sets of sources, a command at two revisions, one
// binary under two environments. The gate uses three operations: prepare the arm, list its items,
// run one fresh process. Owned by its caller. Thread-safety: belongs to one thread. Failure:
// kFailed is the arm's own fault and becomes a verdict on the items concerned. Any other code means
// that the tool or the machine cannot continue, and ends the comparison.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "guard/gate/samples.h"

#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

namespace purlin::guard {

// The unit of a verdict. Items of equal names in both arms are the same item.
struct Item {
  std::string kernel;
  std::string shape;  // "M=512,N=512"; "" where not known
  std::string
      variant;  // separates items of equal kernel and shape: the requested config; may be ""

  std::string text() const;
  bool operator==(const Item& other) const = default;
  bool operator<(const Item& other) const {
    return std::tie(kernel, shape, variant) < std::tie(other.kernel, other.shape, other.variant);
  }
};

// The result of one process for one item.
struct ItemReading {
  Item item;
  Status status;  // kFailed: not measured, with the reason
  ProcessReading process;
  bool skipped = false;  // it skips itself; `status` has the reason
};
using Readings = std::vector<ItemReading>;

// A benchmark that its program lists and does not run, such as one for another data type.
struct SkippedItem {
  Item item;
  std::string reason;
};

class Arm {
 public:
  virtual ~Arm() = default;
  // For people: "HEAD~1 (3f2a9c1)", "the baseline of 2026-11-20".
  virtual std::string label() const = 0;
  // Untimed work that happens once, such as the search for the items. Called once, first.
  virtual Status prepare() = 0;
  // After prepare(): the items, and an id over code, configs, command and environment. A resumed
  // comparison requires the same id.
  virtual const std::vector<Item>& items() const = 0;
  virtual std::string fingerprint() const = 0;
  // After prepare(): what is no item, because it skips itself.
  virtual const std::vector<SkippedItem>& skipped() const {
    static const std::vector<SkippedItem> none;
    return none;
  }
  // The facts for a reader who runs it again; part of the report.
  virtual Json record() const = 0;

  // Starts one fresh process that measures `wanted`, in this order where it can choose, and waits
  // for it. The result may hold further items. An item of `wanted` without a result has failed.
  virtual Result<Readings> launch(const std::vector<Item>& wanted) = 0;
  // Runs `wanted` once, unmeasured: compiles, and checks outputs against the reference where
  // there is one. The times are not used.
  virtual Result<Readings> rehearse(const std::vector<Item>& wanted) { return launch(wanted); }
  // The maximum number of items for one process.
  virtual std::size_t most_per_launch() const { return SIZE_MAX; }
};

}  // namespace purlin::guard
