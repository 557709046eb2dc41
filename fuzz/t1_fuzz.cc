// SPDX-License-Identifier: Apache-2.0
// T1 files: any text is refused, or is a spec whose default config resolves or is refused in turn.
#include "model/spec/t1.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const SpecUse use : {SpecUse::kRun, SpecUse::kSpace}) {
    const Result<KernelSpec> spec =
        parse_t1(text, "fuzz.json", use,
                 [](const std::string&) -> Result<std::string> { return std::string(); });
    if (!spec.is_ok()) continue;
    const DeviceInfo device;
    const purlin::Scope scope = config_scope(*spec, spec->problem, default_config(*spec), device);
    (void)check_constraints(*spec, scope).is_ok();
    (void)resolve_launch(spec->launch, scope, device).is_ok();
    (void)resolve_launch(spec->reference.launch, scope, device).is_ok();
  }
  return 0;
}
