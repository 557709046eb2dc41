// SPDX-License-Identifier: Apache-2.0
// `purlin config`: each setting with its value and where that comes from, and every other variable
// of the environment that Purlin reads.
#include "base/files.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/settings.h"
#include "cli/help/variables.h"
#include "model/document.h"

#include <optional>
#include <string>

namespace purlin::cli {
namespace {

// nullopt: not set. Of a secret, only that it is set.
std::optional<std::string> shown_value(const Variable& variable) {
  const std::string value = environment_variable(variable.name.c_str());
  if (value.empty()) return std::nullopt;
  return variable.secret ? "(hidden)" : value;
}

class ConfigCommand : public Command {
 public:
  std::string_view name() const override { return "config"; }
  std::string_view summary() const override {
    return "Show each setting with its value and origin";
  }
  VerbText text() const override {
    return {.description =
                "A setting is the default of every option of its name. The first of these sources "
                "decides: the option, the environment variable, the nearest purlin.toml upwards, "
                "the user's purlin.toml, the built-in default. The second table has the other "
                "variables.\n\nExample of a purlin.toml:\n  "
                "device = \"cuda:0\"\n  cache = \".purlin-cache\"     # relative to the file",
            .examples = {{"purlin config"}, {"PURLIN_DEVICE=cuda:1 purlin config --json"}},
            .exit_codes = {{0, "Shown"}, {2, "A purlin.toml is wrong"}},
            .see = {"docs/reference/environment.md"}};
  }
  void declare(Flags& flags) override {
    flags.flag("--json", json_, {"Print one JSON document", "The schema is purlin.config/1."});
  }
  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const Settings settings, Settings::load(".", user_config_directory()));
    if (json_) {
      Json document = new_document("purlin.config/1", host_environment());
      Json list = Json::array();
      for (const Setting& setting : settings.all())
        list.push(Json::object({{"name", setting.name},
                                {"variable", setting.variable},
                                {"value", setting.value.empty() ? Json() : Json(setting.value)},
                                {"origin", setting.origin}}));
      document.set("settings", list);
      Json variables = Json::array();
      for (const VariableGroup& group : variable_groups())
        for (const Variable& variable : group.variables) {
          const std::optional<std::string> value = shown_value(variable);
          variables.push(Json::object(
              {{"variable", variable.name}, {"value", value ? Json(*value) : Json()}}));
        }
      document.set("variables", std::move(variables));
      context.print(document.dump(2) + "\n");
      return kExitOk;
    }
    Table table;
    for (const char* title : {"setting", "value", "origin", "meaning"}) table.column(title);
    for (const Setting& setting : settings.all())
      table.row({setting.name, setting.value.empty() ? "-" : setting.value, setting.origin,
                 setting.help});
    context.print(table.render(context.terminal) + "\n");
    Table variables;
    for (const char* title : {"variable", "value", "meaning"}) variables.column(title);
    for (const VariableGroup& group : variable_groups())
      for (const Variable& variable : group.variables)
        variables.row({variable.name, shown_value(variable).value_or("-"), variable.text});
    context.print(variables.render(context.terminal));
    return kExitOk;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_config_command() { return std::make_unique<ConfigCommand>(); }

}  // namespace purlin::cli
