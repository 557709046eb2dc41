// SPDX-License-Identifier: Apache-2.0
#include "model/spec/includes.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"

#include <algorithm>
#include <set>

namespace purlin {
namespace {

constexpr std::size_t kMaxHeaders = 1000;  // far above any kernel, far below a runaway
constexpr std::size_t kMaxHeaderBytes = std::size_t{16} << 20;

// Names in #include directives, of either form.
std::vector<std::string> included_names(std::string_view source) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    std::string_view line = trim(source.substr(at, end - at));
    at = end + 1;
    if (!starts_with(line, "#")) continue;
    line = trim(line.substr(1));
    if (!starts_with(line, "include")) continue;
    line = trim(line.substr(7));
    if (line.size() < 3 || (line[0] != '"' && line[0] != '<')) continue;
    const std::size_t close = line.find(line[0] == '"' ? '"' : '>', 1);
    if (close != std::string_view::npos) names.emplace_back(line.substr(1, close - 1));
  }
  return names;
}

}  // namespace

Result<std::vector<Header>> included_headers(std::string_view source, const std::string& folder,
                                             const std::vector<std::string>& directories,
                                             const HeaderReader& read) {
  std::vector<Header> headers;
  std::set<std::string> seen;
  const auto add = [&](std::string_view text, const std::string& beside) {
    std::vector<std::string> folders = {beside};
    folders.insert(folders.end(), directories.begin(), directories.end());
    for (const std::string& name : included_names(text)) {
      for (const std::string& candidate : folders) {
        const std::string path = join_path(candidate, name);
        if (seen.contains(path)) break;
        std::optional<std::string> contents = read(path);
        if (!contents) continue;
        seen.insert(path);
        headers.push_back({path, std::move(*contents)});
        break;
      }
    }
  };
  add(source, folder);
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (headers.size() > kMaxHeaders)
      return error(Code::kInvalid, "a source in '{}' includes more than {} headers", folder,
                   kMaxHeaders);
    const Header header = headers[i];  // a copy, for `headers` grows
    add(header.text, parent_path(header.path));
  }
  return headers;
}

Result<std::string> headers_hash(std::string_view source, const std::string& folder,
                                 const std::vector<std::string>& directories,
                                 const HeaderReader& read) {
  PURLIN_ASSIGN(const std::vector<Header> headers,
                included_headers(source, folder, directories, read));
  FieldHasher hasher;
  for (const Header& header : headers) hasher.add(header.text);
  return headers.empty() ? std::string() : hasher.hex();
}

std::optional<std::string> read_header(const std::string& path) {
  Result<std::string> text = read_file(path, kMaxHeaderBytes);
  if (!text.is_ok()) return std::nullopt;
  return std::move(text).value();
}

std::vector<std::string> include_folders(const std::vector<std::string>& options) {
  std::vector<std::string> folders;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (!starts_with(options[i], "-I")) continue;
    if (options[i].size() > 2)
      folders.push_back(options[i].substr(2));
    else if (i + 1 < options.size())
      folders.push_back(options[++i]);
  }
  return folders;
}

}  // namespace purlin
