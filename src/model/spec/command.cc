// SPDX-License-Identifier: Apache-2.0
#include "model/spec/command.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/spec/nodes.h"

#include <algorithm>

namespace purlin {
namespace {

constexpr std::size_t kMaxCommandWords = 1000;
constexpr std::size_t kMaxCommandFiles = 1000;

// Calls `text(part)` and `name(part)` in turn; the name is that of a placeholder.
template <class OnText, class OnName>
Status for_each_part(std::string_view whole, OnText text, OnName name) {
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t brace = std::min(whole.find_first_of("{}", at), whole.size());
    text(whole.substr(at, brace - at));
    if (brace == whole.size()) break;
    if (brace + 1 < whole.size() && whole[brace + 1] == whole[brace]) {
      text(whole.substr(brace, 1));
      at = brace + 2;
      continue;
    }
    const std::size_t end = whole.find('}', brace);
    if (whole[brace] == '}' || end == whole.npos)
      return error(Code::kInvalid, "'{}' has a single brace; write {{{{ or }}}} for a brace",
                   whole);
    PURLIN_TRY(name(whole.substr(brace + 1, end - brace - 1)));
    at = end + 1;
  }
  return Status::ok();
}

class CommandReader {
 public:
  CommandReader(TomlTable& table, const std::vector<std::string>& names)
      : table_(table), names_(names) {}

  Result<std::vector<std::string>> words(std::string_view key, bool output) const {
    PURLIN_ASSIGN(std::vector<std::string> words, table_.strings_or_empty(key));
    if (words.size() > kMaxCommandWords)
      return table_.node().find(key)->complain(
          fmt::format("'{}' has more than {} words", key, kMaxCommandWords));
    if (!words.empty() && words.front().empty())
      return table_.node().find(key)->complain(fmt::format("'{}' begins with an empty word", key));
    for (const std::string& word : words) PURLIN_TRY(check(*table_.node().find(key), word, output));
    return words;
  }

  Status check(const Toml& node, std::string_view text, bool output) const {
    std::vector<std::string> known = names_;
    known.emplace_back(kSpecFolder);
    if (output) known.emplace_back(kOutputFile);
    const Status good = for_each_part(
        text, [](std::string_view) {},
        [&](std::string_view name) {
          if (std::find(known.begin(), known.end(), name) != known.end()) return Status::ok();
          return error(Code::kInvalid, "'{{{}}}' is no parameter or dimension{}", name,
                       spec_nodes::suggestion(name, known));
        });
    return good.is_ok() ? good : node.complain(good.message());
  }

 private:
  TomlTable& table_;
  const std::vector<std::string>& names_;
};

Status read_environment(const Toml* node, const CommandReader& reader, CommandKernel& command) {
  if (node == nullptr) return Status::ok();
  if (node->table() == nullptr)
    return node->complain("'environment' must be a table: {NAME = \"value\"}");
  for (const auto& [name, value] : *node->table()) {
    if (value.string() == nullptr) return value.complain("values of 'environment' must be strings");
    if (name.empty() || name.find('=') != std::string::npos)
      return value.complain(fmt::format("'{}' cannot name an environment variable", name));
    PURLIN_TRY(reader.check(value, *value.string(), false));
    command.environment[name] = *value.string();
  }
  return Status::ok();
}

// A path that stays in the folder of its config.
bool is_inside(const std::string& path) {
  return !path.empty() && path.front() != '/' && path.find("..") == std::string::npos;
}

Status read_verification(TomlTable& table, const CommandReader& reader, CommandKernel& command) {
  PURLIN_ASSIGN(command.check, reader.words("check", false));
  PURLIN_ASSIGN(command.outputs, table.strings_or_empty("outputs"));
  PURLIN_ASSIGN(command.expect, table.string_or("expect", ""));
  for (const std::string& output : command.outputs)
    if (!is_inside(output))
      return table.node().find("outputs")->complain(
          fmt::format("'{}' is no file of the working folder", output));
  const bool digest = command.expect.size() == 64 &&
                      command.expect.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!command.expect.empty() && (!digest || command.outputs.empty()))
    return table.node().find("expect")->complain(
        "'expect' is the SHA-256 of 'outputs', 64 hexadecimal digits");
  if (!command.check.empty() || !command.outputs.empty()) return Status::ok();
  return table.node().complain(
      "nothing verifies the outputs: give 'check', a command that ends with 0 when they are right, "
      "or 'outputs', files that are the same for every config");
}

Status read_times(TomlTable& table, CommandKernel& command) {
  const Toml* format = table.node().find("format");
  if (format != nullptr && format->string() != nullptr && *format->string() == "wall") {
    PURLIN_TRY(table.string("format").status());
    command.wall_time = true;
  } else {
    PURLIN_ASSIGN(command.rules, read_output_rules(table));
  }
  PURLIN_ASSIGN(command.benchmark, table.string_or("benchmark", ""));
  return Status::ok();
}

Status read_files(TomlTable& table, const std::string& spec, const CommandFileReader& read,
                  CommandKernel& command) {
  PURLIN_ASSIGN(const std::vector<std::string> names, table.strings_or_empty("files"));
  if (names.size() > kMaxCommandFiles)
    return table.node().find("files")->complain(
        fmt::format("more than {} files", kMaxCommandFiles));
  for (const std::string& name : names) {
    const Result<std::string> text = read(join_path(parent_path(spec), name));
    if (!text.is_ok()) return table.node().find("files")->complain(text.status().message());
    command.files.push_back({name, hash128_hex(*text)});
  }
  return Status::ok();
}

}  // namespace

Result<CommandKernel> read_command(const Toml& node, const std::vector<std::string>& names,
                                   const std::string& spec, const CommandFileReader& read) {
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[command]"));
  CommandKernel command;
  const CommandReader reader(table, names);
  PURLIN_ASSIGN(command.build, reader.words("build", false));
  PURLIN_ASSIGN(command.run, reader.words("run", true));
  if (command.run.empty())
    return node.complain(
        "[command] needs 'run', the list of its words: run = [\"./bench\", \"{N}\"]");
  PURLIN_TRY(read_environment(table.optional("environment"), reader, command));
  PURLIN_TRY(read_verification(table, reader, command));
  PURLIN_TRY(read_times(table, command));
  PURLIN_TRY(read_files(table, spec, read, command));
  PURLIN_ASSIGN(const std::string device, table.string_or("device", ""));
  if (!device.empty() && device != "host")
    return node.find("device")->complain(
        "'device' is \"host\", for commands that use the processor alone; leave it out for a GPU");
  command.on_host = device == "host";
  PURLIN_TRY(table.finish());
  return command;
}

std::string fill_template(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string filled;
  static_cast<void>(for_each_part(
      text, [&](std::string_view part) { filled += part; },
      [&](std::string_view name) {
        const auto found = values.find(std::string(name));
        if (found != values.end()) filled += found->second;
        return Status::ok();
      }));
  return filled;
}

std::string CommandKernel::identity() const {
  FieldHasher hasher;
  hasher.add("purlin.command/1");
  for (const auto* words : {&build, &run, &check, &outputs}) {
    hasher.add(std::to_string(words->size()));
    for (const std::string& word : *words) hasher.add(word);
  }
  hasher.add(expect).add(benchmark).add(wall_time ? "wall" : to_text(rules.format));
  for (const std::string& rule : {rules.time, rules.time_column, rules.pattern, rules.unit})
    hasher.add(rule);
  for (const auto& [name, value] : environment) hasher.add(name).add(value);
  for (const File& file : files) hasher.add(file.name).add(file.hash);
  return hasher.hex();
}

}  // namespace purlin
