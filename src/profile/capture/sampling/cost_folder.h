// SPDX-License-Identifier: Apache-2.0
// The folder of cost records (cost_record.h) is bounded: each driver, device and way of capture has
// records of its own, and nobody takes away those of drivers that are gone. Where there are more
// than kMaxCostRecords, those that were written longest ago go, a quarter at once, so that this is
// seldom work; a program whose record went is recorded in its next run, as a new one is.
//
// Called by whoever adds a record, in programs that are not ours: it waits for nothing, throws
// nothing but std::bad_alloc, and removes nothing but records and their temporary files. [MT];
// several processes may do it at once, and what is gone already is not missed.
#pragma once

#include <cstddef>
#include <string>

namespace purlin::profile::capture {

constexpr std::size_t kMaxCostRecords = 512;

// `path`: of the record that was added, which stays.
void bound_cost_records(const std::string& path, std::size_t most = kMaxCostRecords);

}  // namespace purlin::profile::capture
