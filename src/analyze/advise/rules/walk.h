// SPDX-License-Identifier: Apache-2.0
// Walk: the launches of a profile in the order in which the device ran them, stream by stream. They
// are cut at the border of a step, where the host waited, and at a memcpy from or to the host.
// Rules about chains walk these runs; what one rule has taken, the next leaves alone. Built once
// per advice; the facts must outlive it.
#pragma once

#include "analyze/advise/facts.h"
#include "analyze/advise/rules/touch.h"

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace purlin::analyze {

class HostFacts;

using Launches = std::vector<std::uint32_t>;  // indices into Timeline::activities, in order

// One sequence of rows, and all its occurrences.
struct Chain {
  std::vector<std::uint32_t> rows;  // of the profile, one for each kernel
  std::vector<Launches> groups;     // its occurrences
  double ns = 0, exposed_ns = 0;    // of all of them
  double count() const { return static_cast<double>(groups.size()); }
  double each_ns() const { return groups.empty() ? 0 : ns / count(); }
};

// "" where the record has none.
std::string_view name_in(const Timeline& timeline, std::uint32_t name);
// A memcpy from the device to itself.
bool within_device(const Profile& profile, const Activity& activity);

// What a recorded data flow shows for all ops of a step: rules do not guess it from sizes.
struct KnownFlow {
  bool reads = false;      // what is read of a result
  bool repeats = false;    // which results of a step an earlier op of it has made
  bool unchanged = false;  // what no step changes
};

class Walk {
 public:
  explicit Walk(const Facts& facts);

  // Launches of one stream between two cuts.
  const std::vector<Launches>& runs() const { return runs_; }
  const Touch& touch(std::uint32_t activity) const;
  const Touch& row_touch(std::uint32_t row) const { return touches_[row]; }
  const Touch& report_touch(std::size_t row) const { return report_touches_[row]; }
  const Activity& at(std::uint32_t activity) const;
  const KernelStat& stat(std::uint32_t activity) const;
  // Whether an earlier rule claims the launch. A rule takes what its saving counts.
  bool taken(std::uint32_t activity) const { return taken_[activity]; }
  void take(std::span<const std::uint32_t> activities);
  const KnownFlow& known() const { return known_; }
  void know(KnownFlow known) { known_ = known; }
  bool trains() const { return trains_; }  // the program runs a backward pass or an optimizer
  // Index of the step that holds it; -1 outside of all.
  int step_of(const Activity& activity) const;
  double duration(std::uint32_t activity) const;
  // Of all work of some activities.
  double duration(std::span<const std::uint32_t> activities) const;
  const Facts& facts() const { return facts_; }
  // How often launches were looked at so far: what the rules' work grows with.
  std::size_t looks() const { return looks_; }

 private:
  void cut(const HostFacts& host, std::span<const std::uint32_t> stream);

  const Facts& facts_;
  std::vector<Touch> touches_;         // of each profile row
  std::vector<Touch> report_touches_;  // of each row of the report
  std::vector<Launches> runs_;
  std::vector<bool> taken_;
  bool trains_ = false;
  KnownFlow known_;
  mutable std::size_t looks_ = 0;
};

// Chains by their rows.
class Chains {
 public:
  explicit Chains(const Walk& walk) : walk_(walk) {}
  void add(std::span<const std::uint32_t> group);
  // Most time first.
  std::vector<const Chain*> all() const;

 private:
  const Walk& walk_;
  std::map<std::vector<std::size_t>, Chain> chains_;
};

}  // namespace purlin::analyze
