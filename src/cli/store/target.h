// SPDX-License-Identifier: Apache-2.0
// The argument and options that the verbs of `purlin store` share. A value; one thread.
#pragma once

#include "cli/frame/command.h"
#include "store/store.h"

#include <string>

namespace purlin::cli {

class StoreTarget {
 public:
  void declare(Flags& flags);
  // What was given, else PURLIN_STORE. kInvalid where neither names one.
  Result<std::string> get() const;

 private:
  std::string target_;
};

}  // namespace purlin::cli
