// SPDX-License-Identifier: Apache-2.0
#include "model/spec/sources.h"

#include "base/files.h"
#include "base/text.h"
#include "model/spec/includes.h"

namespace purlin {
namespace {

constexpr const char* kLanguages[] = {"cuda", "opencl", "triton"};

Status read_compiler(TomlTable& table, SourceText& source) {
  PURLIN_ASSIGN(const std::string compiler, table.string_or("compiler", "nvrtc"));
  if (compiler != "nvrtc" && compiler != "nvcc")
    return table.node()
        .find("compiler")
        ->complain(fmt::format("compiler is \"nvrtc\" or \"nvcc\", not '{}'", compiler));
  source.compiler = compiler == "nvcc" ? compiler : "";
  PURLIN_ASSIGN(source.archs, table.strings_or_empty("arch"));
  for (const std::string& arch : source.archs)
    if (!starts_with(arch, "sm_") || arch.find_first_of("0123456789") != 3)
      return table.node().find("arch")->complain(
          fmt::format("arch lists architectures such as \"sm_90a\", not '{}'", arch));
  return Status::ok();
}

Status read_headers(const Toml& node, const std::string& folder, const std::string& spec,
                    const SourceReader& read, SourceText& source) {
  std::vector<std::string> folders;
  for (const std::string& include : source.include)
    folders.push_back(join_path(parent_path(spec), include));
  for (std::string& include : include_folders(source.options))
    folders.push_back(std::move(include));
  Result<std::string> hash = headers_hash(
      source.text, folder, folders, [&](const std::string& path) -> std::optional<std::string> {
        Result<std::string> text = read(path);
        if (!text.is_ok()) return std::nullopt;
        return std::move(text).value();
      });
  if (!hash.is_ok()) return hash.status().with_context(node.where());
  source.headers_hash = std::move(hash).value();
  return Status::ok();
}

}  // namespace

Result<std::map<std::string, SourceText>> read_sources(TomlTable& table, std::string_view what,
                                                       const std::string& spec,
                                                       const SourceReader& read) {
  std::map<std::string, SourceText> sources;
  for (const char* language : kLanguages) {
    const Toml* node = table.optional(language);
    if (node == nullptr) continue;
    const std::string title = fmt::format("[{}.{}]", what, language);
    PURLIN_ASSIGN(TomlTable source, TomlTable::of(*node, title));
    SourceText text;
    PURLIN_ASSIGN(text.file, source.string("file"));
    PURLIN_ASSIGN(text.options, source.strings_or_empty("options"));
    PURLIN_ASSIGN(text.include, source.strings_or_empty("include"));
    if (std::string_view(language) == "cuda") PURLIN_TRY(read_compiler(source, text));
    PURLIN_TRY(source.finish());
    const std::string path = join_path(parent_path(spec), text.file);
    Result<std::string> contents = read(path);
    if (!contents.is_ok())
      return contents.status().with_context(node->find("file")->where() + ": " + title);
    text.text = std::move(contents).value();
    PURLIN_TRY(read_headers(*node, parent_path(path), spec, read, text));
    sources[language] = std::move(text);
  }
  if (sources.empty())
    return table.node().complain(fmt::format(
        "[{}] needs a source: [{}.cuda] or [{}.opencl] with file = \"…\"", what, what, what));
  return sources;
}

}  // namespace purlin
