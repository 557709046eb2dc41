// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/snapshot.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/spec/includes.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace purlin::guard {
namespace {

constexpr std::size_t kMaxFiles = 1000;
constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

std::string normal(const std::string& path) {
  return std::filesystem::path(absolute_path(path)).lexically_normal().string();
}

// Adds a source and the files that it includes from its include folders.
Status collect(const std::string& path, std::set<std::string>* paths) {
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxFileBytes));
  const std::string folder = parent_path(path);
  PURLIN_ASSIGN(const std::vector<Header> headers,
                included_headers(text, folder, {folder}, read_header));
  paths->insert(path);
  for (const Header& header : headers) paths->insert(normal(header.path));
  return Status::ok();
}

// The deepest folder that holds all of them.
std::string common_folder(const std::set<std::string>& paths) {
  std::string folder = parent_path(*paths.begin());
  for (const std::string& path : paths)
    while (folder != "/" && !starts_with(path, folder + "/")) folder = parent_path(folder);
  return folder;
}

// Relative, without ".." or empty parts: it stays inside the folder of the snapshot.
bool is_safe(const std::string& path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string::npos) return false;
  for (const std::string& part : split(path, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

}  // namespace

std::string Snapshot::id() const {
  FieldHasher hasher;
  hasher.add(spec);
  for (const File& file : files) hasher.add(file.path).add(file.text);
  return hasher.hex();
}

Result<Snapshot> take_snapshot(const KernelSpec& spec) {
  const std::string spec_path = normal(spec.file);
  const std::string folder = parent_path(spec_path);
  std::set<std::string> paths;
  paths.insert(spec_path);
  // The source of a library's operation is generated from the spec itself.
  if (!spec.library)
    for (const auto* sources : {&spec.sources, &spec.reference.sources})
      for (const auto& [language, source] : *sources)
        PURLIN_TRY(collect(normal(join_path(folder, source.file)), &paths));

  if (spec.command)
    for (const CommandKernel::File& file : spec.command->files)
      paths.insert(normal(join_path(folder, file.name)));
  if (paths.size() > kMaxFiles)
    return error(Code::kInvalid, "'{}' consists of more than {} files", spec.file, kMaxFiles);
  const std::string root = common_folder(paths);
  const std::size_t skip = root == "/" ? 1 : root.size() + 1;
  Snapshot snapshot;
  snapshot.spec = spec_path.substr(skip);
  for (const std::string& path : paths) {
    PURLIN_ASSIGN(std::string text, read_file(path, kMaxFileBytes));
    snapshot.files.push_back({path.substr(skip), std::move(text)});
  }
  return snapshot;
}

Result<std::string> unpack(const Snapshot& snapshot, const std::string& folder) {
  for (const Snapshot::File& file : snapshot.files) {
    const std::string path = join_path(folder, file.path);
    PURLIN_TRY(make_directories(parent_path(path)));
    PURLIN_TRY(write_atomic(path, file.text));
  }
  return join_path(folder, snapshot.spec);
}

Json to_json(const Snapshot& snapshot) {
  Json files = Json::array();
  for (const Snapshot::File& file : snapshot.files)
    files.push(Json::object({{"path", file.path}, {"text", file.text}}));
  return Json::object({{"spec", snapshot.spec}, {"files", std::move(files)}});
}

Result<Snapshot> snapshot_from_json(const Json& json) {
  Snapshot snapshot;
  PURLIN_ASSIGN(snapshot.spec, json.string_at("spec"));
  if (json["files"].size() > kMaxFiles)
    return error(Code::kCorrupt, "a snapshot holds more than {} files", kMaxFiles);
  bool has_spec = false;
  for (const Json& item : json["files"].items()) {
    Snapshot::File file;
    PURLIN_ASSIGN(file.path, item.string_at("path"));
    PURLIN_ASSIGN(file.text, item.string_at("text"));
    if (!is_safe(file.path))
      return error(Code::kCorrupt, "a snapshot names the file '{}', which may lie outside of it",
                   file.path);
    has_spec |= file.path == snapshot.spec;
    snapshot.files.push_back(std::move(file));
  }
  if (!has_spec) return error(Code::kCorrupt, "a snapshot lacks its spec '{}'", snapshot.spec);
  return snapshot;
}

}  // namespace purlin::guard
