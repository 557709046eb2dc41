// SPDX-License-Identifier: Apache-2.0
// Reads results of tuning from files of several formats, as recordings.
//
// The formats are Kernel Tuner caches, T4, KTT JSON (gpu/replay), Kernel Launcher wisdom, and
// Purlin's formats: the document of `tune --json`, a session's journal, stored evaluations, cache
// entries. Files are plain or gzipped; the content decides which format is read. One file may hold
// several recordings: a wisdom file has one for each device and problem. Pure functions, bounded in
// size, depth and number. Failure: kInvalid names the file, the place and what is wrong.
#pragma once

#include "base/status.h"
#include "cache/entry/entry.h"
#include "gpu/replay/recording.h"
#include "model/device/device.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::tune {

// `path` may also be a session's folder. Where a file does not name its device, it is named after
// what follows the last '-' of the file's name: "gemm-MI250X.json.gz".
Result<std::vector<gpu::Recording>> read_recordings(const std::string& path);
Result<std::vector<gpu::Recording>> parse_recordings(std::string_view text);

// A cache entry: its winner, the default, the runner-up and the ties.
gpu::Recording recording_of(const cache::Entry& entry);
gpu::Recording recording_of(const std::vector<Evaluation>& evaluations, const DeviceInfo& device);

// "nvidia", "amd", "intel", "apple", "arm", "qualcomm", from the words drivers use; "" = not known.
std::string vendor_of(std::string_view device);

}  // namespace purlin::tune
