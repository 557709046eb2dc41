// SPDX-License-Identifier: Apache-2.0
#include "gpu/source_lines.h"

#include "base/os/library.h"
#include "gpu/vendor_libraries.h"

#include <cupti_pcsampling.h>

#include <cstdlib>
#include <memory>

namespace purlin::gpu {
namespace {

using Correlate = decltype(&cuptiGetSassToSourceCorrelation);

// CUPTI allocates what it returns.
std::string taken(char* text) {
  const std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
  return owned == nullptr ? "" : std::string(owned.get());
}

}  // namespace

Result<SourceLines> SourceLines::open() {
  auto library = Library::open(vendor_library_names("cupti", {13, 12}));
  Correlate correlate = nullptr;
  if (!library.is_ok() || !library->bind(correlate, "cuptiGetSassToSourceCorrelation"))
    return error(
        Code::kUnavailable,
        "source lines of GPU code cannot be looked up: libcupti is not found ({}). Install "
        "the CUDA toolkit's CUPTI or the Python package nvidia-cuda-cupti, or name it in "
        "PURLIN_CUPTI",
        library.is_ok() ? library->name() + " is too old" : library.status().message());
  SourceLines lines;
  lines.correlate_ = reinterpret_cast<void*>(correlate);
  return lines;
}

SourceLine SourceLines::find(std::string_view module, const std::string& function,
                             std::uint64_t offset) const {
  CUpti_GetSassToSourceCorrelationParams asked = {};
  asked.size = CUpti_GetSassToSourceCorrelationParamsSize;
  asked.cubin = module.data();
  asked.cubinSize = module.size();
  asked.functionName = function.c_str();
  asked.pcOffset = offset;
  const CUptiResult result = reinterpret_cast<Correlate>(correlate_)(&asked);
  const std::string file = taken(asked.fileName), folder = taken(asked.dirName);
  if (result != CUPTI_SUCCESS || file.empty() || asked.lineNumber == 0) return {};
  const bool whole = file.front() == '/' || folder.empty();
  return {whole ? file : folder + "/" + file, asked.lineNumber};
}

}  // namespace purlin::gpu
