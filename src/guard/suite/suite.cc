// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/suite.h"

#include "base/files.h"
#include "base/text.h"
#include "base/toml.h"
#include "model/expression/value.h"

#include <algorithm>
#include <set>

namespace purlin::guard {
namespace {

constexpr std::size_t kMaxSuiteBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxItems = 10000;

// A number of `table` within [low, high]. The message names the place of the number.
Result<double> bounded(TomlTable& table, std::string_view key, double fallback, double low,
                       double high) {
  PURLIN_ASSIGN(const double value, table.number_or(key, fallback));
  if (value >= low && value <= high) return value;
  return table.node().find(key)->complain(
      fmt::format("'{}' must lie between {} and {}, not {}", key, low, high, value));
}

Result<int> bounded_int(TomlTable& table, std::string_view key, int fallback, int low, int high) {
  PURLIN_ASSIGN(const std::int64_t value, table.integer_or(key, fallback));
  if (value >= low && value <= high) return static_cast<int>(value);
  return table.node().find(key)->complain(
      fmt::format("'{}' must lie between {} and {}, not {}", key, low, high, value));
}

Status parse_measure(const Toml* node, measure::Policy* policy) {
  if (node == nullptr) return Status::ok();
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(*node, "[measure]"));
  PURLIN_ASSIGN(policy->warmup_launches,
                bounded_int(table, "warmup", policy->warmup_launches, 0, 100000));
  PURLIN_ASSIGN(policy->min_samples,
                bounded_int(table, "min_samples", policy->min_samples, 1, 100000));
  PURLIN_ASSIGN(policy->max_samples, bounded_int(table, "max_samples",
                                                 std::max(policy->max_samples, policy->min_samples),
                                                 policy->min_samples, 100000));
  PURLIN_ASSIGN(policy->budget_s, bounded(table, "budget_s", policy->budget_s, 0.001, 3600));
  PURLIN_ASSIGN(policy->flush_l2, table.boolean_or("cold_cache", policy->flush_l2));
  using Inputs = measure::Policy::Inputs;
  PURLIN_ASSIGN(const std::string inputs, table.string_or("inputs", ""));
  if (inputs == "reuse" || inputs == "rotate")
    policy->inputs = inputs == "rotate" ? Inputs::kRotate : Inputs::kReuse;
  else if (const Toml* said = table.node().find("inputs"))
    return said->complain(fmt::format("inputs is \"reuse\" or \"rotate\", not '{}'", inputs));
  return table.finish();
}

// Pairs at the looks of one stage.
Result<std::vector<int>> parse_looks(TomlTable& table, std::string_view key,
                                     std::vector<int> fallback) {
  const Toml* node = table.optional(key);
  if (node == nullptr) return fallback;
  std::vector<int> looks;
  if (node->array() != nullptr)
    for (const Toml& look : *node->array())
      if (look.integer() != nullptr && *look.integer() >= 5 && *look.integer() <= 400 &&
          (looks.empty() || *look.integer() > looks.back()))
        looks.push_back(static_cast<int>(*look.integer()));
  if (looks.empty() || looks.size() != node->array()->size())  // empty where it is no list
    return node->complain(
        fmt::format("'{}' must be a rising list of pairs between 5 and 400, like [8, 16]", key));
  return looks;
}

Status parse_design(const Toml* node, Design* design) {
  if (node == nullptr) return Status::ok();
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(*node, "[design]"));
  PURLIN_ASSIGN(design->screen_looks, parse_looks(table, "screen_pairs", design->screen_looks));
  PURLIN_ASSIGN(design->confirm_looks, parse_looks(table, "confirm_pairs", design->confirm_looks));
  PURLIN_ASSIGN(design->screen_alpha,
                bounded(table, "screen_alpha", design->screen_alpha, 0.001, 0.5));
  PURLIN_ASSIGN(design->suite_alpha, bounded(table, "suite_alpha", design->suite_alpha, 1e-6, 0.2));
  PURLIN_TRY(table.finish());
  if (design->confirm_looks.size() != design->confirm_split.size())
    design->confirm_split.assign(design->confirm_looks.size(),
                                 1.0 / static_cast<double>(design->confirm_looks.size()));
  return Status::ok();
}

Status check_config(const Toml& node, const std::string& config) {
  if (config == "cached" || config == "default") return Status::ok();
  if (config.find('=') == std::string::npos)
    return node.complain(fmt::format(
        "config '{}' is neither \"cached\" nor \"default\" nor an assignment like \"BM=64,BN=32\"",
        config));
  const Result<Config> parsed = parse_config(config);
  return parsed.is_ok() ? Status::ok() : node.complain(parsed.status().message());
}

Status parse_item(const Toml& node, const std::string& folder, const Thresholds& defaults,
                  std::vector<SuiteItem>* items) {
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[[items]]"));
  SuiteItem item;
  item.where = node.where();
  PURLIN_ASSIGN(const std::string spec, table.string("spec"));
  item.spec_path = join_path(folder, spec);
  if (!file_exists(item.spec_path))
    return table.node().find("spec")->complain(
        fmt::format("the spec '{}' does not exist", item.spec_path));
  PURLIN_ASSIGN(item.config, table.string_or("config", "cached"));
  if (const Toml* config = table.optional("config")) PURLIN_TRY(check_config(*config, item.config));
  PURLIN_ASSIGN(item.tags, table.strings_or_empty("tags"));
  PURLIN_ASSIGN(item.thresholds, parse_thresholds(table.optional("thresholds"), defaults));

  PURLIN_ASSIGN(const std::string shape, table.string_or("shape", ""));
  PURLIN_ASSIGN(std::vector<std::string> shapes, table.strings_or_empty("shapes"));
  if (table.node().find("shape") != nullptr && table.node().find("shapes") != nullptr)
    return node.complain("an item has 'shape' or 'shapes', not both");
  PURLIN_TRY(table.finish());
  if (shapes.empty()) shapes = {shape};
  for (std::string& text : shapes) {
    item.shape = std::move(text);
    items->push_back(item);
  }
  return Status::ok();
}

}  // namespace

Result<Thresholds> parse_thresholds(const Toml* node, Thresholds thresholds) {
  if (node == nullptr) return thresholds;
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(*node, "[thresholds]"));
  PURLIN_ASSIGN(thresholds.detectable,
                bounded(table, "detectable", thresholds.detectable, 0.001, 10));
  PURLIN_ASSIGN(thresholds.floor, bounded(table, "floor", thresholds.floor, 0, 10));
  PURLIN_ASSIGN(thresholds.absolute_floor_ns,
                bounded(table, "absolute_floor_ns", thresholds.absolute_floor_ns, 0, 1e12));
  PURLIN_TRY(table.finish());
  // At a slowdown equal to the floor, half of all runs estimate less: the gate never finds it.
  if (thresholds.floor >= thresholds.detectable)
    return node->complain(fmt::format(
        "'floor' ({}) must lie below 'detectable' ({}): a slowdown of the floor's size is found "
        "only half of the time",
        thresholds.floor, thresholds.detectable));
  return thresholds;
}

Result<Suite> parse_suite(std::string_view text, const std::string& path) {
  PURLIN_ASSIGN(const Toml document, Toml::parse(text, path));
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(document, "the suite"));
  PURLIN_ASSIGN(const std::string schema, table.string("schema"));
  if (schema != "purlin.suite/1")
    return document.find("schema")->complain(fmt::format(
        "schema '{}' is not one this Purlin reads; it reads \"purlin.suite/1\"", schema));
  Suite suite;
  suite.file = path;
  PURLIN_ASSIGN(suite.name, table.string("name"));
  if (suite.name.empty() || suite.name.find('/') != std::string::npos)
    return document.find("name")->complain(
        "'name' must be a plain word: baselines are named for it");
  PURLIN_ASSIGN(suite.device, table.string_or("device", suite.device));
  PURLIN_ASSIGN(const int seed, bounded_int(table, "seed", 0, 0, 2000000000));
  suite.seed = static_cast<std::uint64_t>(seed);
  PURLIN_ASSIGN(suite.rounds, bounded_int(table, "rounds", suite.rounds, 3, 1000));
  PURLIN_ASSIGN(suite.timeout_s, bounded(table, "timeout_s", suite.timeout_s, 1, 86400));
  PURLIN_ASSIGN(const int per_process, bounded_int(table, "per_process", 16, 1, 1000));
  suite.per_process = static_cast<std::size_t>(per_process);
  PURLIN_ASSIGN(const Thresholds defaults,
                parse_thresholds(table.optional("thresholds"), Thresholds{}));
  PURLIN_TRY(parse_measure(table.optional("measure"), &suite.policy));
  PURLIN_TRY(parse_design(table.optional("design"), &suite.design));
  const Toml* items = table.optional("items");
  const Toml* commands = table.optional("commands");
  PURLIN_TRY(table.finish());
  if (items == nullptr && commands == nullptr)
    return document.complain("a suite needs [[items]], [[commands]] or both");
  for (const Toml* list : {items, commands})
    if (list != nullptr && (list->array() == nullptr || list->array()->empty()))
      return list->complain("must be a list of tables: write [[items]], [[commands]]");
  if (commands != nullptr) {
    for (const Toml& node : *commands->array()) {
      PURLIN_ASSIGN(CommandSpec command, parse_command(node, defaults));
      suite.commands.push_back(std::move(command));
      if (suite.commands.size() > kMaxItems)
        return node.complain(fmt::format("more than {} commands in one suite", kMaxItems));
    }
  }
  if (items == nullptr) return suite;

  const std::string folder = parent_path(path);
  std::set<std::string> seen;
  for (const Toml& node : *items->array()) {
    const std::size_t first = suite.items.size();
    PURLIN_TRY(parse_item(node, folder, defaults, &suite.items));
    if (suite.items.size() > kMaxItems)
      return node.complain(fmt::format("more than {} items in one suite", kMaxItems));
    for (std::size_t i = first; i < suite.items.size(); ++i) {
      const SuiteItem& item = suite.items[i];
      if (!seen.insert(item.spec_path + '\0' + item.shape + '\0' + item.config).second)
        return node.complain(
            fmt::format("the same spec, shape '{}' and config are in the suite twice", item.shape));
    }
  }
  return suite;
}

Result<Suite> load_suite(const std::string& path) {
  if (!file_exists(path)) return error(Code::kNotFound, "there is no suite '{}'", path);
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxSuiteBytes));
  return parse_suite(text, path);
}

Result<Suite> with_tags(Suite suite, const std::vector<std::string>& tags) {
  if (tags.empty()) return suite;
  const auto carries = [&](const auto& item) {
    return std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) {
      return std::find(item.tags.begin(), item.tags.end(), tag) != item.tags.end();
    });
  };
  std::set<std::string> known;
  for (const SuiteItem& item : suite.items) known.insert(item.tags.begin(), item.tags.end());
  for (const CommandSpec& command : suite.commands)
    known.insert(command.tags.begin(), command.tags.end());
  std::erase_if(suite.items, [&](const SuiteItem& item) { return !carries(item); });
  std::erase_if(suite.commands, [&](const CommandSpec& command) { return !carries(command); });
  if (suite.items.empty() && suite.commands.empty())
    return error(Code::kInvalid, "no item of '{}' has the tag {}; its tags are: {}", suite.file,
                 join(tags, " or "),
                 known.empty() ? "none" : join({known.begin(), known.end()}, ", "));
  return suite;
}

}  // namespace purlin::guard
