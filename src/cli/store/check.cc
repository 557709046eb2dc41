// SPDX-License-Identifier: Apache-2.0
// `purlin store check` and `purlin store release`: damage and size of a store; its quarantine.
#include "base/text.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/store/target.h"

namespace purlin::cli {
namespace {

Json check_document(const std::string& target, const store::StoreCheck& check) {
  Json document = document_of("purlin.store-check/1", {{"target", target},
                                                       {"engine", check.engine},
                                                       {"engine_version", check.version},
                                                       {"schema_version", check.schema},
                                                       {"damaged", check.damaged()},
                                                       {"bytes", check.bytes},
                                                       {"batches", check.batches},
                                                       {"hour_rows", check.hour_rows},
                                                       {"day_rows", check.day_rows},
                                                       {"month_rows", check.month_rows},
                                                       {"first_hour_ns", check.first_hour_ns},
                                                       {"last_hour_ns", check.last_hour_ns}});
  Json findings = Json::array();
  for (const store::StoreFinding& finding : check.findings) {
    Json item = Json::object();
    item.set("where", finding.where);
    item.set("what", finding.what);
    item.set("damage", finding.damage);
    findings.push(std::move(item));
  }
  document.set("findings", std::move(findings));
  return document;
}

std::string check_text(const store::StoreCheck& check) {
  std::string text =
      fmt::format("{} {}, schema {}: {}, {}\n{} of hours, {} of days, {} of months\n", check.engine,
                  check.version, check.schema, format_bytes(static_cast<double>(check.bytes)),
                  counted(check.batches, "batch"), counted(check.hour_rows, "row"),
                  counted(check.day_rows, "row"), counted(check.month_rows, "row"));
  if (check.last_hour_ns > 0)
    text += fmt::format("hours from {} to {}\n", format_rfc3339(check.first_hour_ns),
                        format_rfc3339(check.last_hour_ns));
  for (const store::StoreFinding& finding : check.findings)
    text += fmt::format("{}: {}: {}\n", finding.damage ? "damaged" : "note", finding.where,
                        finding.what);
  return text + (check.damaged() ? "" : "no damage\n");
}

class StoreCheckCommand : public Command {
 public:
  std::string_view name() const override { return "store check"; }
  std::string_view summary() const override { return "Read a whole store and report damage"; }
  VerbText text() const override {
    return {.description =
                "Reads every file or table, compares each sketch with its row, and states what is "
                "damaged. A damaged day affects only itself. The server may run.",
            .examples = {{"purlin store check /var/lib/purlin/store --json"}},
            .exit_codes = {{0, "No damage"}, {2, "Error"}, {3, "Damage found"}},
            .see = {"docs/guide/store.md"}};
  }
  void declare(Flags& flags) override {
    target_.declare(flags);
    flags.flag("--json", json_, {"Print one JSON document", "The schema is purlin.store-check/1."});
  }
  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const std::string target, target_.get());
    PURLIN_ASSIGN(const store::StoreCheck check, store::check_store(target));
    answer(context, json_, check_document(target, check), check_text(check));
    return check.damaged() ? kExitInconclusive : kExitOk;
  }

 private:
  StoreTarget target_;
  bool json_ = false;
};

class StoreRelease : public Command {
 public:
  std::string_view name() const override { return "store release"; }
  std::string_view summary() const override { return "Count batches that are in quarantine"; }
  VerbText text() const override {
    return {
        .description =
            "A batch whose clock is wrong by more than ten minutes is kept, and does not count. "
            "This verb counts it, with its hours moved by the difference of the clocks. Stop "
            "the server first.",
        .examples = {{"purlin store release /var/lib/purlin/store --node gpu07"}},
        .exit_codes = {{0, "Done"}, {2, "Error"}},
        .see = {"docs/guide/store.md"}};
  }
  void declare(Flags& flags) override {
    target_.declare(flags);
    flags.option("--node", node_, "Only batches of this node", "NAME");
    flags.flag("--json", json_, "Print one JSON document");
  }
  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const std::string target, target_.get());
    PURLIN_ASSIGN(const std::unique_ptr<store::Store> store, store::open_store(target));
    PURLIN_ASSIGN(const std::uint64_t released, store->release(node_));
    answer(context, json_,
           document_of("purlin.store-release/1", {{"target", target}, {"batches", released}}),
           counted(released, "batch") + " released\n");
    return kExitOk;
  }

 private:
  StoreTarget target_;
  std::string node_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_store_check_command() {
  return std::make_unique<StoreCheckCommand>();
}
std::unique_ptr<Command> make_store_release_command() { return std::make_unique<StoreRelease>(); }

}  // namespace purlin::cli
