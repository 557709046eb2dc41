// SPDX-License-Identifier: Apache-2.0
// Library: a shared library opened at run time. Vendor libraries are never linked, so that one
// binary runs with and without them. The handle is kept for the life of the process: drivers do not
// survive being unloaded. Thread-safety: immutable after open.
#pragma once

#include "base/status.h"

#include <string>
#include <vector>

namespace purlin {

class Library {
 public:
  // Tries each name in turn, with the loader's search path; kUnavailable names all that was tried.
  static Result<Library> open(const std::vector<std::string>& names);
  // The symbol, or nullptr.
  void* find(const char* symbol) const;
  // Binds a function pointer; false where the library is too old to have it.
  template <class Function>
  bool bind(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(find(symbol));
    return function != nullptr;
  }
  const std::string& name() const { return name_; }  // the name that opened
  void* handle() const { return handle_; }           // the loader's

 private:
  Library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_;
  std::string name_;
};

}  // namespace purlin
