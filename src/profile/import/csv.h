// SPDX-License-Identifier: Apache-2.0
// CsvReader: RFC 4180 records of a file: quoted fields with doubled quotes and line breaks inside,
// LF or CRLF line ends, a byte order mark before the first. Fields are separated by ',', ';' or
// tab: by what separates most fields of the header, since spreadsheets and some locales write the
// others.
//
// Memory is bounded by one record. Fields point into the reader and stay valid until the next call.
// Errors are kInvalid and name line and column (both from 1, columns in bytes), or what the input
// said. A quote that is still open at the end of the file is kCorrupt: the file was cut short. One
// owner, not thread-safe.
#pragma once

#include "base/status.h"
#include "profile/import/input.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::profile {

class CsvReader {
 public:
  struct Limits {
    std::size_t max_record_bytes = std::size_t{16} << 20;
    std::size_t max_fields = 65'536;
  };

  CsvReader(Input input, const Limits& limits) : input_(std::move(input)), limits_(limits) {}
  explicit CsvReader(Input input) : CsvReader(std::move(input), Limits{}) {}

  // The next record into fields(); false at the end. Empty lines are skipped. The first record of a
  // file, or the line last read by next_line(), is the header: its separator holds.
  Result<bool> next();
  // The next line as a separate record, even inside quotes: for output of programs before a table.
  // A line over the limit comes without fields.
  Result<bool> next_line();

  std::span<const std::string_view> fields() const { return fields_; }
  std::string_view field(std::size_t i) const { return i < fields_.size() ? fields_[i] : ""; }
  char separator() const { return separator_; }        // of the header
  std::uint64_t line() const { return record_line_; }  // where the record starts
  std::uint64_t column(std::size_t field) const;       // where a field of it starts
  // The record ended with the file, not with a line break: it may have been cut short.
  bool cut() const { return cut_; }
  const Input& input() const { return input_; }

 private:
  Status begin();  // the byte order mark
  void choose_separator(std::size_t end);
  Result<bool> fill();  // more bytes behind buffer_; false at the end
  Result<bool> find_line(std::size_t& end);
  Result<bool> find_record(std::size_t& end);
  Status split(std::size_t end, bool strict);
  void consume(std::size_t end);

  Input input_;
  Limits limits_;
  std::string buffer_;
  std::size_t at_ = 0;  // start of what is unread
  bool began_ = false, ended_ = false, cut_ = false;
  char separator_ = ',';
  bool separator_chosen_ = false;
  std::uint64_t line_ = 1, record_line_ = 1;  // of at_, of the record
  std::string record_;                        // the fields, quotes undone; fields_ point here
  std::vector<std::string_view> fields_;
  std::vector<std::size_t> columns_;
};

// The status with the file's name before it, where what read the bytes has not put it there.
Status in_file(const Status& status, const std::string& name);

}  // namespace purlin::profile
