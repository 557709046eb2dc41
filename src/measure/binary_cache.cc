// SPDX-License-Identifier: Apache-2.0
#include "measure/binary_cache.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "base/version.h"

#include <set>

namespace purlin::measure {
namespace {

constexpr std::string_view kSchema = "purlin.binary/1";
constexpr std::size_t kMaxBinaryBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxIncludes = 256;

// Names in #include directives, of either form. Conditional inclusion is not looked at: hashing a
// header too many costs a recompilation, one too few would cost the truth.
std::vector<std::string> included_names(std::string_view source) {
  std::vector<std::string> names;
  std::size_t at = 0;
  while (at < source.size()) {
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

// The contents of every header reachable through the include directories. What lies elsewhere
// belongs to the toolkit, which is in the key by its version.
void add_headers(FieldHasher& hasher, const gpu::CompileRequest& request) {
  std::vector<std::string> pending = included_names(request.source);
  std::set<std::string> seen;
  while (!pending.empty() && seen.size() < kMaxIncludes) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    for (const std::string& directory : request.include_directories) {
      const std::string path = join_path(directory, name);
      if (!file_exists(path) || !seen.insert(path).second) continue;
      const Result<std::string> text = read_file(path, std::size_t{16} << 20);
      if (!text.is_ok()) continue;
      hasher.add(name).add(*text);
      for (std::string& nested : included_names(*text)) pending.push_back(std::move(nested));
      break;
    }
  }
}

}  // namespace

std::string BinaryCache::key(const DeviceInfo& device, const gpu::CompileRequest& request) {
  FieldHasher hasher;
  hasher.add(kSchema).add(device.backend).add(device.name).add(device.vendor).add(device.arch);
  hasher.add(device.driver).add(device.toolkit);
  hasher.add(request.name).add(request.entry).add(request.source);
  hasher.add(std::to_string(request.options.size()));
  for (const std::string& option : request.options) hasher.add(option);
  for (const auto& [name, value] : request.config.items()) hasher.add(name).add(to_text(value));
  add_headers(hasher, request);
  return hasher.hex();
}

std::string BinaryCache::path_of(const std::string& key) const {
  return join_path(join_path(directory_, key.substr(0, 2)), key + ".bin");
}

// SCHEMA CHECKSUM\nHEADER\nIMAGE; the checksum is of all that follows the first line.
std::optional<gpu::Binary> BinaryCache::get(const std::string& key) const {
  const Result<std::string> contents = read_file(path_of(key), kMaxBinaryBytes);
  if (!contents.is_ok()) return std::nullopt;
  const std::string_view text = *contents;
  const std::size_t first = text.find('\n');
  if (first == std::string_view::npos) return std::nullopt;
  const std::string_view body = text.substr(first + 1);
  if (text.substr(0, first) != fmt::format("{} {}", kSchema, hash128_hex(body)))
    return std::nullopt;
  const std::size_t second = body.find('\n');
  if (second == std::string_view::npos) return std::nullopt;
  const Result<Json> header = Json::parse(body.substr(0, second), {kMaxHeaderBytes, 4});
  // A file under another key's name is as good as none.
  if (!header.is_ok() || (*header)["key"].as_string() != key) return std::nullopt;
  gpu::Binary binary;
  binary.entry = (*header)["entry"].as_string();
  binary.log = (*header)["log"].as_string();
  binary.compile_s = (*header)["compile_s"].as_double();
  binary.image = std::string(body.substr(second + 1));
  return binary;
}

Status BinaryCache::put(const std::string& key, const gpu::Binary& binary) const {
  const Json header = Json::object({{"tool_version", version()},
                                    {"key", key},
                                    {"entry", binary.entry},
                                    {"log", binary.log.substr(0, kMaxHeaderBytes / 8)},
                                    {"compile_s", binary.compile_s}});
  const std::string body = header.dump() + "\n" + binary.image;
  if (body.size() + 128 > kMaxBinaryBytes)
    return error(Code::kInvalid, "a binary of {} is too large to keep",
                 format_bytes(static_cast<double>(body.size())));
  const std::string path = path_of(key);
  PURLIN_TRY(make_directories(parent_path(path)));
  return write_atomic(path, fmt::format("{} {}\n", kSchema, hash128_hex(body)) + body);
}

}  // namespace purlin::measure
