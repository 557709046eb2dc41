// SPDX-License-Identifier: Apache-2.0
#include "base/os/library.h"

#include "base/text.h"

#include <dlfcn.h>

namespace purlin {

Result<Library> Library::open(const std::vector<std::string>& names) {
  std::string reason;
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle, name);
    if (const char* text = ::dlerror(); reason.empty() && text != nullptr) reason = text;
  }
  return error(Code::kUnavailable, "none of {} could be loaded ({})", join(names, ", "), reason);
}

void* Library::find(const char* symbol) const { return ::dlsym(handle_, symbol); }

}  // namespace purlin
