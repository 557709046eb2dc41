// SPDX-License-Identifier: Apache-2.0
// Passes of one program in rocprof's files: it ran again for other counters, and its launches count
// once. Pure functions.
#pragma once

#include "profile/import/rocm/rocprof_csv.h"
#include "profile/import/rocm/tables.h"

#include <cstddef>
#include <string>
#include <vector>

namespace purlin::profile {

struct RocprofHeader {
  std::size_t file = 0;  // index into the list given
  std::string group;
  RocprofTable table = RocprofTable::kNone;
  bool hip = false;  // of calls: the runtime's, not HSA's below it
  // Of a launch's row: the counters, and whether the launch has a number and times.
  std::string counters;
  bool numbered = false, timed = false;
  // The program ran again for other counters: its launches have been counted.
  bool later_pass = false;
};

// Folders pass_1, pass_2, … and pmc_1, pmc_2, … hold one run each of the same program.
void mark_pass_folders(const std::vector<RocprofFile>& files, std::vector<RocprofHeader>& headers);
// rocprof-compute writes one table for each set of counters, all of the same launches.
void mark_pass_tables(const std::vector<RocprofFile>& files, std::vector<RocprofHeader>& headers);

}  // namespace purlin::profile
