// SPDX-License-Identifier: Apache-2.0
// Nsight Systems' SQLite: bytes as a database in memory, or, behind "SQL:", statements that make
// one; an error, or a profile whose indices hold.
#include "profile/import/nsys/session.h"
#include "profile/import/nsys/sqlite_file.h"
#include "sql_database.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string made;
  if (text.substr(0, 4) == "SQL:") {
    made = database_of(text.substr(4));
    text = made;
  }
  const purlin::Result<purlin::profile::SqliteFile> file =
      purlin::profile::SqliteFile::from_bytes(text);
  if (!file.is_ok()) return 0;
  purlin::profile::ImportOptions options;
  options.max_timeline_events = 64;
  options.max_kernel_rows = 16;
  const purlin::Result<purlin::Profile> profile = purlin::profile::import_nsys(*file, options);
  if (!profile.is_ok()) return 0;
  const purlin::Timeline& timeline = profile->timeline;
  for (const purlin::Activity& activity : timeline.activities) {
    const bool kernel = activity.kind == purlin::ActivityKind::kKernel;
    if (activity.row >= (kernel ? profile->kernels.size() : profile->copies.size())) std::abort();
    if (activity.device >= profile->environment.devices.size()) std::abort();
    if (activity.process >= profile->processes.size()) std::abort();
    if (activity.call != purlin::kNone && activity.call >= timeline.calls.size()) std::abort();
    if (activity.duration_ns < 0) std::abort();
  }
  return 0;
}
