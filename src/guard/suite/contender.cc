// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/contender.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::guard {

OutputRules samples_rules() {
  OutputRules rules;
  rules.format = OutputFormat::kCsv;
  rules.name_column = "kernel";
  rules.time_column = "time_us";
  rules.clock_column = "sm_clock_mhz";
  return rules;
}

Thresholds Contender::thresholds_of(const Item& item, const Thresholds& fallback) const {
  if (const auto own = thresholds.find(item); own != thresholds.end()) return own->second;
  for (const CommandSpec& command : commands)
    if (!command.name.empty() &&
        (item.kernel == command.name || starts_with(item.kernel, command.name + "/")))
      return command.thresholds;
  return commands.size() == 1 ? commands.front().thresholds : fallback;
}

namespace {

std::unique_ptr<Arm> commands_arm(const Workload& workload, const Variant& variant,
                                  std::string directory, std::vector<CommandSpec> commands) {
  CommandArmOptions options;
  options.label = variant.label;
  options.directory = std::move(directory);
  options.environment = variant.environment;
  if (!variant.cache.empty()) options.environment["PURLIN_CACHE"] = variant.cache;
  options.nominal_mhz = workload.device.clock_mhz;
  options.identity = variant.identity;
  options.scratch = workload.scratch;
  if (workload.suite) options.seed = workload.suite->seed;
  return make_command_arm(std::move(options), std::move(commands));
}

// The folder of the suite, or its counterpart in the variant's revision.
Result<std::string> folder_of(const Suite& suite, const Variant& variant) {
  return moved_path(parent_path(absolute_path(suite.file)), variant.repository, variant.root);
}

}  // namespace

Result<Contender> make_contender(const Workload& workload, const Variant& variant) {
  Contender made;
  if (!workload.suite) {
    CommandSpec command = workload.command;
    if (!variant.command.empty()) command.argv = variant.command;
    if (command.argv.empty()) return error(Code::kInvalid, "{}: no command", variant.label);
    made.arm = commands_arm(workload, variant,
                            variant.root.empty() ? absolute_path(".") : variant.root, {command});
    return made;
  }
  if (!variant.command.empty())
    return error(Code::kInvalid, "a suite has its own commands; it takes no '{}'",
                 join(variant.command, " "));
  std::vector<std::unique_ptr<Arm>> arms;
  if (!workload.suite->items.empty()) {
    RunnerOptions runner = workload.runner;
    for (const auto& [name, value] : variant.environment) runner.environment[name] = value;
    made.runner = make_worker_runner(std::move(runner));
    SuiteArmOptions options;
    options.label = variant.label;
    options.cache = variant.cache.empty() ? workload.cache : variant.cache;
    options.from = variant.repository;
    options.to = variant.root;
    options.environment = variant.environment;
    PURLIN_ASSIGN(SuiteArm arm,
                  make_suite_arm(*workload.suite, workload.device, options, *made.runner));
    arms.push_back(std::move(arm.arm));
    made.thresholds = std::move(arm.thresholds);
    made.files = std::move(arm.files);
  }
  if (!workload.suite->commands.empty()) {
    PURLIN_ASSIGN(std::string folder, folder_of(*workload.suite, variant));
    made.commands = workload.suite->commands;
    arms.push_back(commands_arm(workload, variant, std::move(folder), made.commands));
  }
  made.arm = join_arms(variant.label, std::move(arms));
  return made;
}

Result<std::map<std::string, std::string>> parse_environment(const std::string& text) {
  std::string source = text;
  char separator = ',';
  if (text.find('=') == std::string::npos || file_exists(text)) {
    PURLIN_ASSIGN(source, read_file(text, 1 << 20));
    separator = '\n';
  }
  std::map<std::string, std::string> environment;
  for (const std::string& part : split(source, separator)) {
    const std::string_view assignment = trim(part);
    if (assignment.empty() || assignment[0] == '#') continue;
    const std::size_t at = assignment.find('=');
    if (at == 0 || at == std::string_view::npos)
      return error(Code::kInvalid, "'{}' in '{}' is no assignment like NAME=value", assignment,
                   text);
    environment[std::string(assignment.substr(0, at))] = assignment.substr(at + 1);
  }
  return environment;
}

}  // namespace purlin::guard
