// SPDX-License-Identifier: Apache-2.0
// Modules: the code of the GPU modules that a program loads. CUPTI shows it when it asks for a
// module's hash, which needs no subscriber. Code with line tables is kept, up to a bound, until
// samples of it are seen. It is then written to the spool, where `purlin profile` looks up source
// lines after the program has ended.
//
// One per process, never destroyed. [MT] see() is called on any thread that loads a module and
// takes no other lock; nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace purlin::profile::capture::cuda {

class Modules {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

  explicit Modules(std::string spool) : spool_(std::move(spool)) {}

  // The module's hash, never 0.
  std::uint64_t see(std::string_view code);
  // Samples of a module were found. False if its code was not kept because of the bound.
  bool use(std::uint64_t hash);

 private:
  const std::string spool_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::string> kept_;  // "" = written, or has no lines
  std::size_t bytes_ = 0;
};

// Whether a module (an ELF file) has tables of source lines.
bool has_line_tables(std::string_view code);

}  // namespace purlin::profile::capture::cuda
