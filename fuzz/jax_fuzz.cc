// SPDX-License-Identifier: Apache-2.0
// What the hook for JAX leaves: its note, and the texts of programs that are matched with a
// timeline. The first line is a note. The rest is the entry of a module, and each of its bytes also
// chooses a kernel that ran. A match changes neither the number of launches nor their time.
#include "profile/jax/jax_programs.h"
#include "profile/jax/kernel_match.h"
#include "require.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using purlin::Profile;

struct Totals {
  double launches = 0, ns = 0;
};
Totals totals_of(const Profile& run) {
  Totals out;
  for (const purlin::KernelRow& row : run.kernels) {
    out.launches += row.duration.count();
    out.ns += row.duration.total_ns();
  }
  return out;
}

void add_launch(Profile& run, const std::string& kernel, std::int64_t ns) {
  std::uint32_t row = 0;
  while (row < run.kernels.size() && run.kernels[row].name != kernel) ++row;
  if (row == run.kernels.size()) run.kernels.emplace_back().name = kernel;
  run.kernels[row].duration.add(static_cast<double>(ns));
  purlin::Activity activity;
  activity.start_ns = static_cast<std::int64_t>(run.timeline.activities.size()) * 1000;
  activity.duration_ns = ns;
  activity.row = row;
  run.timeline.activities.push_back(activity);
}

void try_match(std::string_view entry) {
  std::string text =
      "HloModule m, is_scheduled=true\n\n%f (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} "
      "parameter(0)\n  ROOT %a = f32[8]{0} add(%p, %p)\n}\n\nENTRY %e (p: f32[8]) -> f32[8] {\n"
      "  %p = f32[8]{0} parameter(0)\n  %a = f32[8]{0} fusion(%p), kind=kLoop, calls=%f\n"
      "  %b = f32[8]{0} custom-call(%a, %a), custom_call_target=\"__cublas$lt$matmul\"\n";
  text += entry;
  text += "\n  ROOT %c = f32[8]{0} fusion(%b), kind=kLoop, calls=%f\n}\n";
  purlin::profile::ProcessPrograms process{7, {}};
  for (const auto& module : purlin::profile::hlo::read_modules(text))
    process.programs.push_back(purlin::profile::hlo::program_of(module));
  std::vector<std::string> names = {"nvjet_sm90_tst", "splitK_reduce", "other"};
  for (const purlin::profile::hlo::Program& program : process.programs)
    for (const purlin::profile::hlo::Launch& launch : program.launches)
      if (names.size() < 60 && !launch.kernel.empty()) names.push_back(launch.kernel);
  Profile run;
  run.environment.devices.emplace_back().name = "NVIDIA H200";
  run.processes.emplace_back().pid = 7;
  for (const char c : entry.substr(0, 400)) {
    const auto byte = static_cast<unsigned char>(c);
    add_launch(run, names[byte % names.size()], 1000 + byte);
  }
  const Totals before = totals_of(run);
  const purlin::profile::ProgramMatch match = purlin::profile::match_programs(run, {process});
  const Totals after = totals_of(run);
  require(std::abs(after.launches - before.launches) <= 1e-6 * before.launches);
  require(std::abs(after.ns - before.ns) <= 1e-6 * before.ns);
  require(match.launches <= before.launches && match.with_op_ns <= match.total_ns * (1 + 1e-9));
  require(match.heavy_with_shape_ns <= match.heavy_ns + 1 && match.heavy_with_shape_ns >= -1);
  for (const purlin::Activity& activity : run.timeline.activities)
    require(activity.row < run.kernels.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view line = input.substr(0, input.find('\n'));
  const auto note = purlin::profile::parse_jax_note(std::string(line));
  if (note.is_ok()) {
    require(note->pid > 0 && note->modules >= 0 && note->left_out >= 0 && note->cost_ns >= 0);
    require(note->detail.size() <= 400 && note->jax.size() <= 64);
  }
  try_match(input.substr(line.size()));
  return 0;
}
