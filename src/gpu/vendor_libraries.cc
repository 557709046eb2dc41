// SPDX-License-Identifier: Apache-2.0
#include "gpu/vendor_libraries.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>
#include <cctype>

namespace purlin::gpu {
namespace {

std::vector<std::string> toolkit_roots() {
  std::vector<std::string> roots;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string root = environment_variable(name); !root.empty())
      roots.push_back(std::move(root));
  roots.emplace_back("/usr/local/cuda");
  return roots;
}

// …/lib/python3.11/site-packages/nvidia/*: one folder per wheel ("cuda_nvrtc", "cu13", "cublas").
std::vector<std::string> wheel_roots() {
  std::vector<std::string> roots;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string environment = environment_variable(name);
    if (environment.empty()) continue;
    const std::string lib = join_path(environment, "lib");
    for (const std::string& python : list_directory(lib).value_or({})) {
      if (!starts_with(python, "python")) continue;
      const std::string packages = join_path(lib, python + "/site-packages/nvidia");
      for (const std::string& wheel : list_directory(packages).value_or({}))
        roots.push_back(join_path(packages, wheel));
    }
  }
  return roots;
}

std::string variable_of(std::string_view name) {
  std::string variable = "PURLIN_";
  for (const char c : name)
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

}  // namespace

std::vector<std::string> vendor_library_names(std::string_view name,
                                              const std::vector<int>& majors) {
  std::vector<std::string> files;
  for (const int major : majors) files.push_back(fmt::format("lib{}.so.{}", name, major));
  std::vector<std::string> names;
  const auto add_folder = [&](const std::string& folder) {
    for (const std::string& file : files)
      if (std::string path = join_path(folder, file); file_exists(path))
        names.push_back(std::move(path));
  };
  if (const std::string given = environment_variable(variable_of(name).c_str()); !given.empty()) {
    if (is_directory(given))
      add_folder(given);
    else
      names.push_back(given);
  }
  names.insert(names.end(), files.begin(), files.end());
  for (const std::string& root : toolkit_roots())
    for (const char* folder : {"lib64", "lib", "extras/CUPTI/lib64"})
      add_folder(join_path(root, folder));
  for (const std::string& root : wheel_roots()) add_folder(join_path(root, "lib"));
  return names;
}

std::vector<std::string> cuda_include_directories() {
  std::vector<std::string> roots = toolkit_roots();
  for (std::string& root : wheel_roots()) roots.push_back(std::move(root));
  std::vector<std::string> found;
  for (const std::string& root : roots) {
    const std::string folder = join_path(root, "include");
    if (file_exists(join_path(folder, "cuda_fp16.h")) &&
        std::find(found.begin(), found.end(), folder) == found.end())
      found.push_back(folder);
  }
  return found;
}

}  // namespace purlin::gpu
