// SPDX-License-Identifier: Apache-2.0
// rocpd databases, as bytes or, behind "SQL:", as statements that make one; rocprofv3's JSON and
// Proton's trees otherwise: an error, or a profile whose indices hold.
#include "profile/import/proton/hatchet.h"
#include "profile/import/rocm/rocpd.h"
#include "profile/import/rocm/rocprof_json.h"
#include "sql_database.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using purlin::profile::Input;

void check(const purlin::Result<purlin::Profile>& profile) {
  if (!profile.is_ok()) return;
  const purlin::Timeline& timeline = profile->timeline;
  for (const purlin::Activity& activity : timeline.activities) {
    const bool kernel = activity.kind == purlin::ActivityKind::kKernel;
    if (activity.row >= (kernel ? profile->kernels.size() : profile->copies.size())) std::abort();
    if (activity.device >= profile->environment.devices.size()) std::abort();
    if (activity.process >= profile->processes.size()) std::abort();
    if (activity.call != purlin::kNone && activity.call >= timeline.calls.size()) std::abort();
    if (activity.duration_ns < 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  purlin::profile::ImportOptions options;
  options.max_timeline_events = 64;
  options.max_kernel_rows = 16;
  if (purlin::profile::looks_like_rocprof_json(text)) {
    check(purlin::profile::import_rocprof_json(Input::from_bytes(text), "fuzz", options));
    return 0;
  }
  if (purlin::profile::looks_like_hatchet(text)) {
    check(purlin::profile::import_hatchet(Input::from_bytes(text), "fuzz", options));
    return 0;
  }
  std::string made;
  if (text.substr(0, 4) == "SQL:") {
    made = database_of(text.substr(4));
    text = made;
  }
  const purlin::Result<purlin::profile::SqliteFile> file =
      purlin::profile::SqliteFile::from_bytes(text);
  if (file.is_ok()) check(purlin::profile::import_rocpd(*file, "fuzz", options));
  return 0;
}
