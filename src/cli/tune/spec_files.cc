// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/spec_files.h"

#include "base/files.h"
#include "base/text.h"

namespace purlin::cli {

Result<std::vector<KernelSpec>> load_specs(const std::vector<std::string>& places, Log& log) {
  std::vector<KernelSpec> specs;
  for (const std::string& place : places) {
    if (!is_directory(place)) {
      PURLIN_ASSIGN(KernelSpec spec, load_spec(place));
      specs.push_back(std::move(spec));
      continue;
    }
    std::vector<std::string> files;
    PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(place));
    for (const std::string& name : names) {
      const std::string path = join_path(place, name);
      if (ends_with(name, ".toml")) files.push_back(path);
      if (!is_directory(path)) continue;
      PURLIN_ASSIGN(const std::vector<std::string> inner, list_directory(path));
      for (const std::string& file : inner)
        if (ends_with(file, ".toml")) files.push_back(join_path(path, file));
    }
    for (const std::string& file : files) {
      Result<KernelSpec> spec = load_spec(file);
      if (spec.is_ok())
        specs.push_back(std::move(spec).value());
      else
        log.debug("'{}' is no spec: {}", file, spec.status().message());
    }
  }
  return specs;
}

}  // namespace purlin::cli
