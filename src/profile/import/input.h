// SPDX-License-Identifier: Apache-2.0
// Input: the bytes of a foreign file, in order and in pieces. It decompresses gzip, which it finds
// by magic bytes, never by the name. Several members and trailing garbage are accepted, as by gzip.
//
// Memory is two fixed buffers for files of any size. A read gives what could be decoded before a
// damaged place; the next one is the error, naming the file's byte offset. Owns the open file.
// Thread-safety: none; one owner.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace purlin::profile {

class Input {
 public:
  static Result<Input> open(const std::string& path);
  // The same over bytes in memory, which must outlive it: tests, fuzzing.
  static Input from_bytes(std::string_view bytes);
  Input(Input&& other) noexcept;
  Input& operator=(Input&& other) noexcept;
  ~Input();

  // Between 1 and `size` decoded bytes into `into`; 0 at the end. kIo, kCorrupt.
  Result<std::size_t> read(char* into, std::size_t size);

  // All of it, for documents that are read as a whole. kInvalid where it is more than `most` bytes.
  Result<std::string> read_all(std::size_t most);

  bool compressed() const;
  std::uint64_t offset() const;       // decoded bytes handed out so far
  std::uint64_t file_offset() const;  // bytes of the file used for them
  std::uint64_t file_size() const;    // 0 where the system does not say

 private:
  struct State;
  explicit Input(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The first `size` decoded bytes, fewer where the file is shorter or damaged behind them: enough to
// see what a file is. kNotFound, kIo; kCorrupt where not one byte could be decoded.
Result<std::string> read_prefix(const std::string& path, std::size_t size);

}  // namespace purlin::profile
