// SPDX-License-Identifier: Apache-2.0
// Bounds the folder of cost records (cost_record.h). Each driver, device and way of capture has
// separate records, and no process removes those of drivers that are gone. When there are more than
// kMaxCostRecords, the quarter that was written longest ago is removed at once, so that removal is
// rare. A program whose record was removed is recorded in its next run, like a new program.
//
// Called by each process that adds a record, inside the user's program. It waits for nothing,
// throws only std::bad_alloc, and removes only records and their temporary files. [MT]; several
// processes may call it at once. A file that is already gone is no error.
#pragma once

#include <cstddef>
#include <string>

namespace purlin::profile::capture {

constexpr std::size_t kMaxCostRecords = 512;

// `path`: of the record that was added, which stays.
void bound_cost_records(const std::string& path, std::size_t most = kMaxCostRecords);

}  // namespace purlin::profile::capture
