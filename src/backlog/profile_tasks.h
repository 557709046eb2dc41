// SPDX-License-Identifier: Apache-2.0
// From a profile to tuning jobs: the kernels that take most time, as far as a spec computes the
// same problem, become tasks of the backlog, with the shape the program had. Pure but for the
// cache, which is asked what is tuned already. Failure: of the cache alone.
#pragma once

#include "analyze/report/report.h"
#include "base/status.h"
#include "cache/backlog.h"
#include "cache/store/store.h"
#include "model/spec/spec.h"

#include <span>
#include <string>
#include <vector>

namespace purlin::cli {

struct ProfileTasks {
  std::vector<cache::Task> tasks;     // the heaviest first
  std::vector<std::string> left_out;  // rows without a job, and why
};

// Of the heaviest `top` rows of a report grouped by shape. A spec computes a row's problem where
// its kernel is the row's, or where op, an input's type and the names of the dimensions agree.
ProfileTasks tasks_of_profile(const analyze::Report& report, std::span<const KernelSpec> specs,
                              std::size_t top, const cache::Store& store);

}  // namespace purlin::cli
