// SPDX-License-Identifier: Apache-2.0
// Merger: profiles of many processes, files and nodes into one. Rows are merged when
// kernel, op, shape, dtype, launch shape, resources, build and device are equal. Devices are equal
// when id, name, UUID and driver are. Runs with another build or driver stay separate.
// Timelines of two ranks are never of one device.
// Timelines are joined, their indices mended; sampled stalls of one function add up. In content,
// not in order, the result does not depend on the order of merging; it takes time in proportion to
// what is merged.
//
// Refers to its target until finish(). Not thread-safe. Cannot fail: activities beyond the bound
// are counted in Timeline::left_out.
#pragma once

#include "model/profile/profile.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::profile {

class Merger {
 public:
  explicit Merger(Profile& into, std::size_t max_timeline_events = 20'000'000);
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;
  ~Merger();

  void add(const Profile& from);
  std::size_t timeline_events() const;  // held so far
  void finish();  // sorts timeline and stalls; the destructor does it otherwise

 private:
  struct Moved;  // from the indices of a part to those of the whole

  void add_environment(const Profile& part, Moved& moved);
  std::uint32_t add_kernel(const KernelRow& row, int device, const std::string& build);
  void add_kernels(const Profile& from, Moved& moved);
  void add_waits(const Profile& from);
  void add_copies(const Profile& from, Moved& moved);
  void add_timeline(const Profile& from, const Moved& moved);
  void add_stalls(const Profile& from, const Moved& moved);
  void add_coverage(const Coverage& from);
  std::uint32_t name(const std::string& text);

  Profile& into_;
  const std::size_t max_events_;
  std::unordered_multimap<std::uint64_t, std::size_t> rows_;  // by hash of what makes them one
  std::unordered_map<std::string, std::size_t> copies_, devices_, notes_;
  std::unordered_map<std::string, std::uint32_t> names_, stall_files_, stall_reasons_;
  bool unsorted_ = false;
  std::size_t loose_sites_ = 0;  // not combined yet
};

// Of two recordings the one of more ops stays, as the timeline's ops are found by either.
void merge_data_flow(DataFlow& into, const DataFlow& from);

// Counters of the same name become one: the mean over the launches of both.
void merge_counters(std::vector<Counter>& into, const std::vector<Counter>& from);

}  // namespace purlin::profile
