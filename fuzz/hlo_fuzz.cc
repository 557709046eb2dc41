// SPDX-License-Identifier: Apache-2.0
// HLO texts of compiled XLA programs, as the hook for JAX leaves them: bytes as they come, and the
// same as the body of a module, so that fusions and library calls are reached.
#include "profile/import/hlo/launches.h"
#include "require.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

void try_text(std::string_view text) {
  for (const purlin::profile::hlo::Module& module : purlin::profile::hlo::read_modules(text)) {
    const purlin::profile::hlo::Program program = purlin::profile::hlo::program_of(module);
    for (const std::uint32_t at : program.order) require(at < program.launches.size());
    for (const purlin::profile::hlo::Launch& launch : program.launches) {
      require(launch.shape.empty() || !launch.op_class.empty());
      require(!launch.op.empty() && launch.flops >= 0 && launch.bytes >= 0);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try_text(input);
  std::string body = "HloModule m, is_scheduled=true\n\n%f (p: f32[8]) -> f32[8] {\n  ";
  body += input.substr(0, input.size() / 2);
  body += "\n}\n\nENTRY %e (p: f32[8]) -> f32[8] {\n  %p = f32[8,4]{1,0} parameter(0)\n  ";
  body += input.substr(input.size() / 2);
  body += "\n  ROOT %r = f32[8]{0} fusion(%p), kind=kLoop, calls=%f\n}\n";
  try_text(body);
  return 0;
}
