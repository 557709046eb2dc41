// SPDX-License-Identifier: Apache-2.0
// The CSV reader: what was read comes back the same when written as plain RFC 4180 and read again,
// and lines never run backwards.
#include "profile/import/csv.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using purlin::profile::CsvReader;
using purlin::profile::Input;
using Records = std::vector<std::vector<std::string>>;

Records read(std::string_view text) {
  CsvReader reader(Input::from_bytes(text));
  Records records;
  std::uint64_t line = 0;
  while (reader.next().value_or(false)) {
    if (reader.line() <= line || reader.fields().empty()) std::abort();
    line = reader.line();
    records.emplace_back(reader.fields().begin(), reader.fields().end());
  }
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Records records = read(text);
  std::string plain;
  for (const std::vector<std::string>& record : records) {
    std::string line;
    for (const std::string& field : record) {
      line += line.empty() ? "\"" : ",\"";
      for (const char c : field) line += c == '"' ? std::string("\"\"") : std::string(1, c);
      line += '"';
    }
    plain += line + "\n";
  }
  if (read(plain) != records) std::abort();
  CsvReader lines(Input::from_bytes(text));
  while (lines.next_line().value_or(false)) {
  }
  return 0;
}
