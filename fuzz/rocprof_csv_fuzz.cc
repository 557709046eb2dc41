// SPDX-License-Identifier: Apache-2.0
// rocprof's CSV, one file or several of a run ("@@@@" between them): an error, or a profile whose
// indices hold.
#include "profile/import/rocm/rocprof_csv.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using purlin::profile::Input;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<purlin::profile::RocprofFile> files;
  while (files.size() < 8) {
    const std::size_t end = text.find("@@@@");
    const std::string_view part = text.substr(0, end);
    files.push_back({"1_" + std::to_string(files.size() % 2),
                     [part] { return purlin::Result<Input>(Input::from_bytes(part)); }});
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 4);
  }
  purlin::profile::ImportOptions options;
  options.max_timeline_events = 64;
  options.max_kernel_rows = 16;
  const purlin::Result<purlin::Profile> profile =
      purlin::profile::import_rocprof_csv(files, options);
  if (!profile.is_ok()) return 0;
  const purlin::Timeline& timeline = profile->timeline;
  for (const purlin::Activity& activity : timeline.activities) {
    const bool kernel = activity.kind == purlin::ActivityKind::kKernel;
    if (activity.row >= (kernel ? profile->kernels.size() : profile->copies.size())) std::abort();
    if (activity.device >= profile->environment.devices.size()) std::abort();
    if (activity.process >= profile->processes.size()) std::abort();
    if (activity.call != purlin::kNone && activity.call >= timeline.calls.size()) std::abort();
  }
  if (timeline.activities.size() + timeline.calls.size() + timeline.ops.size() +
          timeline.ranges.size() >
      64)
    std::abort();
  return 0;
}
