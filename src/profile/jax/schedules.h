// SPDX-License-Identifier: Apache-2.0
// Schedules: the programs of one process, as questions about kernels that ran need them. Which
// launches have a kernel's name, which follow one another, and which calls of libraries are
// between. It points into the programs, which must outlive it. Immutable, so threads may share it.
// Programs come from foreign texts: time and memory are linear in their schedules.
#pragma once

#include "profile/import/hlo/launches.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace purlin::profile {

inline constexpr std::uint32_t kNowhere = 0xFFFFFFFFu;

// A launch of a program, by indices.
struct LaunchRef {
  std::uint32_t program = kNowhere, launch = kNowhere;
  bool known() const { return program != kNowhere; }
};

class Schedules {
 public:
  explicit Schedules(const std::vector<hlo::Program>& programs);

  // Launches whose kernel has that name, in the order of programs; nullptr without one.
  const std::vector<LaunchRef>* named(const std::string& kernel) const;
  const hlo::Launch& launch(LaunchRef ref) const {
    return programs_[ref.program].launches[ref.launch];
  }
  // Whether the second comes soon after the first, in one program.
  bool follows(LaunchRef first, LaunchRef second) const;
  // The call of a library with that name in a program of that name; where all such do the same.
  LaunchRef call(std::string_view module, std::string_view instruction) const;
  // Launches of the program that are no calls of a library.
  std::size_t named_count(std::uint32_t program) const { return named_counts_[program]; }

  // The calls of libraries between two kernels that follow one another; either may be unknown. As
  // many and of the same shapes in every place where the schedules have this; else nullptr.
  const std::vector<std::uint32_t>* between(LaunchRef before, LaunchRef after) const;

 private:
  struct Gap {
    std::vector<std::uint32_t> calls;
    bool differs = false;
  };

  void add(std::uint32_t p);
  void index_names(std::uint32_t p);
  void keep(std::uint32_t p, std::uint64_t before, std::uint64_t after,
            const std::vector<std::uint32_t>& calls);
  void keep_gap(std::uint64_t key, std::uint32_t p, const std::vector<std::uint32_t>& calls);

  const std::vector<hlo::Program>& programs_;
  std::unordered_map<std::string, std::vector<LaunchRef>> by_kernel_;
  std::unordered_map<std::string, LaunchRef> calls_;  // by program and instruction
  std::vector<std::size_t> named_counts_;
  std::unordered_set<std::uint64_t> near_;       // pairs of signatures
  std::unordered_map<std::uint64_t, Gap> gaps_;  // by the signatures around; 0: unknown
};

}  // namespace purlin::profile
