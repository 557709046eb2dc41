// SPDX-License-Identifier: Apache-2.0
// Profiles from other tools' files. The format is found by looking inside, never by the name;
// gzip is undone on the way. The coverage reports missing data; nothing is guessed.
//
// Importers stream: memory grows with the result (rows, and activities up to a bound), not with
// the file. Files are foreign input. A damaged file is an error naming the byte offset or the row
// where it breaks, or, where a prefix makes sense, a profile with Profile::partial set and a note
// that says up to where. Pure functions, thread-safe.
#pragma once

#include "base/status.h"
#include "model/profile/profile.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace purlin::profile {

enum class Format {
  kPurlin,  // a profile file of our own
  kKineto,  // PyTorch's Chrome trace
  kXla,     // JAX's or TensorFlow's Chrome trace
  kChrome,  // any other Chrome trace with device work in it
  kNsysSqlite,
  kNcuCsv,
  kSpool,  // a folder of our own files: the processes of a run
  kRocprofCsv,
  kRocprofJson,     // rocprofv3's
  kRocpd,           // rocprofv3's and rocprof-sys's database
  kHatchet,         // Triton Proton's
  kStallCsv,        // samples of warp stalls by kernel and reason
  kExecutionTrace,  // PyTorch's: the data flow of a step
};

std::string_view to_text(Format format);  // "kineto"

struct ImportOptions {
  // Activities, calls, ops and ranges kept, together; beyond it only sketches grow.
  std::size_t max_timeline_events = 20'000'000;
  std::size_t max_kernel_rows = 200'000;  // beyond it: the row "(other kernels)"
  // Of the duration sketches of all rows together, 256 MB; beyond it: the same row.
  std::size_t max_sketch_buckets = std::size_t{32} << 20;
  // Called now and then with bytes read and bytes in all (0 = unknown). May be empty.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

// kNotFound, kInvalid with what the file seems to be and what is supported.
Result<Format> detect_format(const std::string& path);
// Any supported file, our own included.
Result<Profile> open_profile(const std::string& path, const ImportOptions& options = {});

// One per format, named for it; open_profile chooses. rocprof: a file, or a folder of them.
Result<Profile> import_chrome_trace(const std::string& path, const ImportOptions& options);
Result<Profile> import_nsys_sqlite(const std::string& path, const ImportOptions& options);
Result<Profile> import_ncu_csv(const std::string& path, const ImportOptions& options);
Result<Profile> import_rocprof_csv(const std::string& path, const ImportOptions& options);
Result<Profile> import_rocprof_json(const std::string& path, const ImportOptions& options);
Result<Profile> import_rocpd(const std::string& path, const ImportOptions& options);
Result<Profile> import_hatchet(const std::string& path, const ImportOptions& options);
Result<Profile> import_stall_csv(const std::string& path, const ImportOptions& options);

}  // namespace purlin::profile
