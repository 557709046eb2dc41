// SPDX-License-Identifier: Apache-2.0
// TokenFile: the tokens of a file that may be edited while the server runs. Owner: the caller of
// look(), one thread. Failure: the error of Tokens::load, each time that its text changes.
#pragma once

#include "fleet/tokens.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace purlin::fleet {

class TokenFile {
 public:
  using Load = std::function<Result<Tokens>(const std::string&)>;
  // Before the file is first read, so that no change is missed.
  explicit TokenFile(std::string path, Load load = Tokens::load)
      : path_(std::move(path)), load_(std::move(load)), seen_(stamp()) {}
  // Tokens where the file has changed; none where nothing is to be done or said. A file that could
  // not be used is tried at every look: it may become readable and look as before.
  std::optional<Result<Tokens>> look();

 private:
  using Stamp = std::array<std::int64_t, 7>;
  Stamp stamp() const;

  const std::string path_;
  const Load load_;
  std::optional<Stamp> seen_;
  std::string said_;
};

}  // namespace purlin::fleet
