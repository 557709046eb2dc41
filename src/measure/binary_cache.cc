// SPDX-License-Identifier: Apache-2.0
#include "measure/binary_cache.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/version.h"
#include "model/spec/includes.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace purlin::measure {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "purlin.binary/1";
constexpr std::size_t kMaxBinaryBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;

}  // namespace

gpu::CompileRequest compile_request(const KernelSpec& spec, const SourceText& source,
                                    const std::string& entry, const Config& config) {
  gpu::CompileRequest request;
  request.name = base_name(source.file);
  request.source = source.text;
  request.entry = entry;
  request.options = source.options;
  request.compiler = source.compiler;
  request.archs = source.archs;
  const std::string path = join_path(parent_path(spec.file), source.file);
  if (!source.file.empty()) request.include_directories = {parent_path(path)};
  for (const std::string& include : source.include)
    request.include_directories.push_back(join_path(parent_path(spec.file), include));
  request.config = config;
  if (spec.library && entry == spec.entry) request.library = spec.library->library;
  return request;
}

std::string BinaryCache::key(const DeviceInfo& device, const gpu::CompileRequest& request) {
  if (!request.library.empty()) return "";  // a token, made faster than it is read
  FieldHasher hasher;
  hasher.add(kSchema).add(device.backend).add(device.name).add(device.vendor).add(device.arch);
  hasher.add(device.driver).add(device.toolkit);
  if (!request.compiler.empty()) {
    if (request.compiler_version.empty()) return "";  // whose binary would it be?
    hasher.add(request.compiler).add(request.compiler_version);
  }
  for (const std::string& arch : request.archs) hasher.add("arch").add(arch);
  hasher.add(request.name).add(request.entry).add(request.source);
  hasher.add(std::to_string(request.options.size()));
  for (const std::string& option : request.options) hasher.add(option);
  for (const auto& [name, value] : request.config.items()) hasher.add(name).add(to_text(value));
  std::vector<std::string> folders = request.include_directories;
  for (std::string& folder : include_folders(request.options)) folders.push_back(std::move(folder));
  const std::string source_folder = folders.empty() ? "." : folders.front();
  const auto headers = included_headers(request.source, source_folder, folders, read_header);
  if (!headers.is_ok()) return "";
  hasher.add("headers");
  for (const Header& header : *headers) hasher.add(header.text);
  return hasher.hex();
}

std::string BinaryCache::path_of(const std::string& key) const {
  return join_path(join_path(directory_, key.substr(0, 2)), key + ".bin");
}

// SCHEMA CHECKSUM\nHEADER\nIMAGE; the checksum is of all that follows the first line.
std::optional<gpu::Binary> BinaryCache::get(const std::string& key) const {
  // Under a CPU driver, images are code that this process runs: no other user may put them there.
  if (!is_own_directory(directory_)) return std::nullopt;
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
  // A file under another key's name is a miss.
  if (!header.is_ok() || (*header)["key"].as_string() != key) return std::nullopt;
  gpu::Binary binary;
  binary.entry = (*header)["entry"].as_string();
  binary.log = (*header)["log"].as_string();
  binary.compile_s = (*header)["compile_s"].as_double();
  binary.image = std::string(body.substr(second + 1));
  // prune() uses the file's time. In a read-only cache it stays the time of writing.
  std::error_code ignored;
  fs::last_write_time(path_of(key), fs::file_time_type::clock::now(), ignored);
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
  PURLIN_TRY(make_private_directory(directory_));
  PURLIN_TRY(make_directories(parent_path(path)));
  return write_atomic(path, fmt::format("{} {}\n", kSchema, hash128_hex(body)) + body);
}

Status BinaryCache::prune(std::uint64_t bytes) const {
  struct File {
    fs::file_time_type used;
    std::uint64_t size;
    fs::path path;
  };
  std::vector<File> files;
  std::uint64_t total = 0;
  std::error_code code;
  fs::recursive_directory_iterator it(directory_, code);
  for (; !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    std::error_code gone;
    if (!it->is_regular_file(gone) || gone) continue;
    // Also the temporary files of killed writers: "KEY.bin.tmp.PID.N".
    if (it->path().filename().string().find(".bin") == std::string::npos) continue;
    const std::uint64_t size = it->file_size(gone);
    const fs::file_time_type used = it->last_write_time(gone);
    if (gone) continue;
    files.push_back({used, size, it->path()});
    total += size;
  }
  if (code && code != std::errc::no_such_file_or_directory)
    return error(Code::kIo, "cannot list '{}': {}", directory_, code.message());
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total <= bytes) break;
    PURLIN_TRY(remove_file(file.path.string()));
    total -= file.size;
  }
  return Status::ok();
}

}  // namespace purlin::measure
