// SPDX-License-Identifier: Apache-2.0
// entries.lost: the records of a cache that damage took, by id, so that a new index does not hide
// that they are missing.
//
// Who writes it holds the lock of the log. Its names count only while the log lacks their records,
// so an outdated file does no harm. Pure file functions. Failure: kIo; a file that cannot be read
// is an empty one.
#pragma once

#include "base/status.h"
#include "cache/store/store.h"

#include <string>
#include <vector>

namespace purlin::cache::lost_records {

std::vector<LostRecord> load(const std::string& directory);
Status save(const std::string& directory, const std::vector<LostRecord>& lost);
Status remove(const std::string& directory);

}  // namespace purlin::cache::lost_records
