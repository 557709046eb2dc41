// SPDX-License-Identifier: Apache-2.0
#include "profile/import/csv.h"

#include "base/text.h"

#include <algorithm>
#include <array>

namespace purlin::profile {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kSeparators = ",;\t";

}  // namespace

std::uint64_t CsvReader::column(std::size_t field) const {
  return field < columns_.size() ? columns_[field] + 1 : 1;
}

Result<bool> CsvReader::fill() {
  if (ended_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t used = buffer_.size();
  buffer_.resize(used + kPieceBytes);
  const Result<std::size_t> got = input_.read(buffer_.data() + used, kPieceBytes);
  buffer_.resize(used + (got.is_ok() ? *got : 0));
  if (!got.is_ok()) return got.status();
  ended_ = *got == 0;
  return !ended_;
}

Status CsvReader::begin() {
  if (began_) return Status::ok();
  while (buffer_.size() < kByteOrderMark.size()) {
    PURLIN_ASSIGN(const bool more, fill());
    if (!more) break;
  }
  if (starts_with(buffer_, kByteOrderMark)) at_ = kByteOrderMark.size();
  began_ = true;
  return Status::ok();
}

// Both: `end` becomes the offset of the line break that ends the record, or the buffer's size at
// the end of the file. False where nothing is left.
Result<bool> CsvReader::find_line(std::size_t& end) {
  PURLIN_TRY(begin());
  for (std::size_t scanned = 0;;) {
    end = buffer_.find('\n', at_ + scanned);
    if (end != std::string::npos) return true;
    end = buffer_.size();
    scanned = end - at_;
    if (scanned > limits_.max_record_bytes) return true;  // no table: let it go in pieces
    PURLIN_ASSIGN(const bool more, fill());
    if (more) continue;
    end = buffer_.size();
    return at_ < end;
  }
}

Result<bool> CsvReader::find_record(std::size_t& end) {
  PURLIN_TRY(begin());
  bool quoted = false;
  for (std::size_t scanned = 0;;) {
    for (std::size_t i = at_ + scanned; i < buffer_.size(); ++i) {
      const char c = buffer_[i];
      if (c == '"') {
        quoted = !quoted;
      } else if (c == '\n' && !quoted) {
        end = i;
        return true;
      }
    }
    scanned = buffer_.size() - at_;
    if (scanned > limits_.max_record_bytes)
      return error(
          Code::kInvalid,
          "line {}, column 1: a record longer than {} bytes; a quote that is never closed?", line_,
          limits_.max_record_bytes);
    PURLIN_ASSIGN(const bool more, fill());
    if (more) continue;
    end = buffer_.size();
    if (at_ >= end) return false;
    if (quoted)
      return error(Code::kCorrupt,
                   "line {}, column 1: the file ends inside a quoted field; it was cut short",
                   line_);
    return true;
  }
}

void CsvReader::choose_separator(std::size_t end) {
  std::array<std::size_t, kSeparators.size()> counts{};
  bool quoted = false;
  for (std::size_t i = at_; i < end; ++i) {
    if (buffer_[i] == '"') quoted = !quoted;
    const std::size_t which = quoted ? std::string_view::npos : kSeparators.find(buffer_[i]);
    if (which != std::string_view::npos) ++counts[which];
  }
  const auto most = std::max_element(counts.begin(), counts.end());  // of equal ones the first
  separator_ = kSeparators[static_cast<std::size_t>(most - counts.begin())];
}

// Fields of [at_, end). Not strict: text that is not CSV is taken unchanged.
Status CsvReader::split(std::size_t end, bool strict) {
  if (end > at_ && buffer_[end - 1] == '\r') --end;
  record_.clear();
  record_.reserve(end - at_);  // views into it must not move
  fields_.clear();
  columns_.clear();
  for (std::size_t i = at_;;) {
    const std::size_t start = record_.size();
    if (fields_.size() >= limits_.max_fields)
      return error(Code::kInvalid, "line {}, column {}: more than {} fields in a record", line_,
                   i - at_ + 1, limits_.max_fields);
    columns_.push_back(i - at_);
    if (i < end && buffer_[i] == '"') {
      for (++i; i < end; ++i) {
        if (buffer_[i] == '"') {
          if (i + 1 >= end || buffer_[i + 1] != '"') break;
          ++i;
        }
        record_ += buffer_[i];
      }
      if (i < end) ++i;  // the closing quote
      if (strict && i < end && buffer_[i] != separator_)
        return error(Code::kInvalid, "line {}, column {}: text behind a closing quote", line_,
                     i - at_ + 1);
    }
    const std::size_t next = std::min(buffer_.find(separator_, i), end);
    record_.append(buffer_, i, next - i);
    fields_.emplace_back(record_.data() + start, record_.size() - start);
    i = next;
    if (i >= end) return Status::ok();
    ++i;  // past the separator; a field follows even where the record ends here
  }
}

void CsvReader::consume(std::size_t end) {
  cut_ = end >= buffer_.size();
  const auto first = buffer_.begin() + static_cast<std::ptrdiff_t>(at_);
  const auto last = buffer_.begin() + static_cast<std::ptrdiff_t>(std::min(end, buffer_.size()));
  line_ += static_cast<std::uint64_t>(std::count(first, last, '\n')) + (cut_ ? 0 : 1);
  at_ = std::min(end + 1, buffer_.size());
}

Result<bool> CsvReader::next() {
  while (true) {
    std::size_t end = 0;
    record_line_ = line_;
    PURLIN_ASSIGN(const bool found, find_record(end));
    if (!found) {
      fields_.clear();
      return false;
    }
    if (!separator_chosen_) choose_separator(end);
    const Status status = split(end, true);
    consume(end);
    if (!status.is_ok()) return status;
    if (fields_.size() == 1 && fields_[0].empty()) continue;
    separator_chosen_ = true;
    return true;
  }
}

Result<bool> CsvReader::next_line() {
  std::size_t end = 0;
  record_line_ = line_;
  PURLIN_ASSIGN(const bool found, find_line(end));
  fields_.clear();
  if (!found) return false;
  choose_separator(end);
  separator_chosen_ = true;
  const bool fits = end - at_ <= limits_.max_record_bytes && split(end, false).is_ok();
  consume(end);
  if (!fits) fields_.clear();
  return true;
}

Status in_file(const Status& status, const std::string& name) {
  return starts_with(status.message(), name) ? status : status.with_context(name);
}

}  // namespace purlin::profile
