// SPDX-License-Identifier: Apache-2.0
// `purlin cache repair`: what damage a cache has, and back from the layers below what it lost.
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/frame/command.h"
#include "cli/tune/target.h"

namespace purlin::cli {
namespace {

class CacheRepair : public Command {
 public:
  std::string_view name() const override { return "cache repair"; }
  std::string_view summary() const override {
    return "Read all records again and restore lost ones from layers";
  }
  VerbText text() const override {
    return {.description =
                "Reads the whole file, restores lost records from the layers below, and writes a "
                "new index. Damage affects only the records that it hits; lookups skip these.",
            .examples = {{"purlin cache repair --cache-layers /srv/purlin/node:/srv/purlin/fleet"}},
            .exit_codes = {{0, "Intact or repaired"},
                           {2, "Error"},
                           {3, "Damage found, and no layer has the lost records"}},
            .see = {"docs/guide/cache.md"}};
  }
  void declare(Flags& flags) override {
    cache_.declare(flags);
    cache_.declare_layers(flags);
    flags.flag("--drop", drop_, "Rewrite the file without the damaged bytes");
    flags.flag("--json", json_, "Print one JSON document");
  }

  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(cache::Layers layers, cache_.open_layers());
    PURLIN_ASSIGN(const std::size_t restored, layers.repair());
    cache::Store& store = layers.stores().front();
    const std::size_t damaged = store.damaged();
    Json document = document_of("purlin.cache-repair/1", {{"directory", store.directory()}});
    report_damage(store, &document);
    warn_of_damage(store, context.log);
    if (drop_) {
      PURLIN_TRY(store.rewrite([](const cache::CacheRecord&) { return true; }));
      PURLIN_TRY(store.forget_lost());
    }
    const std::size_t records = store.record_set().entries() + store.record_set().statuses();
    document.set("records", records);
    document.set("restored_records", restored);
    answer(context, json_, document,
           fmt::format("{}: {} records, {} damaged stretches, {} records restored\n",
                       store.directory(), records, damaged, restored));
    if (damaged > 0 && restored == 0)
      context.log.warn(
          "no layer has the damaged records, or no intact record here names their key; "
          "`purlin cache merge DIR` adds all records of another cache");
    return damaged > 0 && restored == 0 && !drop_ ? kExitInconclusive : kExitOk;
  }

 private:
  CacheFlag cache_;
  bool drop_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_repair_command() { return std::make_unique<CacheRepair>(); }

}  // namespace purlin::cli
