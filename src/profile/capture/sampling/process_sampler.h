// SPDX-License-Identifier: Apache-2.0
// ProcessSampler: whether this process is one of those that are recorded. PURLIN_SAMPLE=N takes one
// run in N, or one rank in N of a run, by the run's id and the launcher's rank: the same choice in
// every process. PURLIN_SAMPLE=auto, or no value (the library is injected without `purlin
// profile`), takes the N with which capture holds the budget over all runs, by what earlier runs of
// the program left (cost_record.h). On any error the process is recorded.
//
// Asked inside cuInit, before CUPTI is loaded: a process that is left out does without it. What it
// asks are variables, a few files of /proc, and the record. A plain value; nothing throws but
// std::bad_alloc.
#pragma once

#include "profile/capture/sampling/cost_record.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile::capture {

struct ProcessSampler {
  struct Note {
    const char* cause;
    std::string text;
  };
  int one_in = 1;        // the process represents so many
  std::string left_out;  // "" or why this process records nothing
  std::string path;      // where to keep what capture costs; "" = nowhere
  std::string identity;  // of the record
  bool governed = true;  // the overhead controller keeps capture within the budget
  // PURLIN_WINDOWS: whether windows follow the start-up window. "on", "off"; "auto" or not set:
  // where earlier runs were beyond the budget as a whole but had room for windows.
  bool windows = false;
  // PURLIN_COPIES: whether memcpy and memset are recorded, from the start to the end
  // (activity/tier.h). "on", "off". Otherwise not with windows. Where the record of earlier runs
  // decides, not if the last run was launch-bound (CostRecord::ended); without a record only for
  // "auto".
  bool copies = true, copies_asked_for = false;
  std::vector<Note> notes;

  // Without `automatic` "auto" is every run: of what does not go by a budget.
  static ProcessSampler from_environment(double budget, bool automatic);
};

// Parts of it, for tests.

// The program by its executable and, of an interpreter, its script's or module's name; arguments
// are not part of it, for they name runs. `arguments` as in /proc/self/cmdline.
std::string program_name(std::string_view executable, std::string_view arguments);
std::uint64_t number_of(std::string_view text);  // the same on every machine
bool is_drawn(std::uint64_t run, long rank, int one_in);

}  // namespace purlin::profile::capture
