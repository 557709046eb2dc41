// SPDX-License-Identifier: Apache-2.0
// `purlin store init` and `purlin store migrate`: makes a store, or brings it to this version.
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/store/target.h"

namespace purlin::cli {
namespace {

class StoreInit : public Command {
 public:
  std::string_view name() const override { return "store init"; }
  std::string_view summary() const override { return "Make a store of a fleet's profiles"; }
  VerbText text() const override {
    return {.description =
                "Makes the folder or the tables of a store. What is there already stays. With a "
                "cluster, run it once for each server: replicas need the macros shard and replica.",
            .more = "PURLIN_CLICKHOUSE_PASSWORD is the password of ClickHouse's user.",
            .examples = {{"purlin store init /var/lib/purlin/store"},
                         {"purlin store init http://purlin@db1:8123/purlin?cluster=fleet"}},
            .exit_codes = {{0, "The store is there"}, {2, "Error"}},
            .see = {"docs/guide/store.md"}};
  }
  void declare(Flags& flags) override {
    target_.declare(flags);
    flags.flag("--json", json_, "Print one JSON document");
  }
  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const std::string target, target_.get());
    PURLIN_TRY(store::init_store(target));
    answer(context, json_, document_of("purlin.store-init/1", {{"target", target}}),
           target + " is ready\n");
    return kExitOk;
  }

 private:
  StoreTarget target_;
  bool json_ = false;
};

class StoreMigrate : public Command {
 public:
  std::string_view name() const override { return "store migrate"; }
  std::string_view summary() const override { return "Bring a store to this version's schema"; }
  VerbText text() const override {
    return {.description =
                "Takes the steps from the schema of an older Purlin to the present one. "
                "Each step is taken whole or not at all. Stop the server first.",
            .examples = {{"purlin store migrate /var/lib/purlin/store"}},
            .exit_codes = {{0, "Done, or nothing to do"}, {2, "Error"}},
            .see = {"docs/guide/store.md"}};
  }
  void declare(Flags& flags) override {
    target_.declare(flags);
    flags.flag("--json", json_, "Print one JSON document");
  }
  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const std::string target, target_.get());
    PURLIN_ASSIGN(const std::vector<std::string> steps, store::migrate_store(target));
    Json list = Json::array();
    std::string text;
    for (const std::string& step : steps) {
      list.push(step);
      text += step + "\n";
    }
    Json document = document_of("purlin.store-migrate/1", {{"target", target}});
    document.set("steps", std::move(list));
    answer(context, json_, document, steps.empty() ? "nothing to do\n" : text);
    return kExitOk;
  }

 private:
  StoreTarget target_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_store_init_command() { return std::make_unique<StoreInit>(); }
std::unique_ptr<Command> make_store_migrate_command() { return std::make_unique<StoreMigrate>(); }

}  // namespace purlin::cli
