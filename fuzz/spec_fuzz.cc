// SPDX-License-Identifier: Apache-2.0
// Specs: any text is refused, or is a spec whose default config resolves or is refused in turn.
#include "model/spec/spec.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<KernelSpec> spec = parse_spec(
      text, "fuzz.toml", [](const std::string&) -> Result<std::string> { return std::string(); });
  if (!spec.is_ok()) return 0;
  const DeviceInfo device;
  const purlin::Scope scope = config_scope(*spec, spec->problem, default_config(*spec), device);
  (void)check_constraints(*spec, scope).is_ok();
  (void)resolve_launch(spec->launch, scope, device).is_ok();
  (void)spec->source_hash("cuda");
  (void)spec->dtype_text();
  return 0;
}
