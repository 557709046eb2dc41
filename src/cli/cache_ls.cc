// SPDX-License-Identifier: Apache-2.0
// `purlin cache ls`: every entry of the cache.
#include "base/text.h"
#include "cli/cache_target.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "model/document.h"

namespace purlin::cli {
namespace {

class CacheLs : public Command {
 public:
  std::string_view name() const override { return "cache ls"; }
  std::string_view summary() const override { return "List the stored winners"; }
  std::string_view details() const override {
    return "The newest entry of each key. With --json, every field of each.\n\n"
           "Example: purlin cache ls --cache ./cache";
  }
  void declare(Flags& flags) override {
    cache_.declare(flags);
    flags.flag("--json", json_, "Print one JSON document");
  }

  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const cache::Store store, cache_.open());
    warn_of_damage(store, context.log);
    const std::vector<cache::Entry> entries = store.list();
    if (json_) {
      Json document = new_document("purlin.cache/1", host_environment());
      document.set("directory", store.directory());
      document.set("damaged_records", store.damaged());
      document.set("newer_records", store.newer());
      Json list = Json::array();
      for (const cache::Entry& entry : entries) list.push(to_json(entry));
      document.set("entries", std::move(list));
      context.print(document.dump(2) + "\n");
      return kExitOk;
    }
    if (entries.empty()) {
      context.log.info("the cache in '{}' is empty; `purlin tune SPEC` fills it",
                       store.directory());
      return kExitOk;
    }
    Table table;
    table.column("kernel");
    table.column("bucket");
    table.column("dtype");
    table.column("device");
    table.column("time", Table::Align::kRight);
    table.column("vs default", Table::Align::kRight);
    table.column("outputs");
    table.column("config");
    for (const cache::Entry& entry : entries) {
      const bool measured = entry.time_ms > 0;
      table.row({entry.key.kernel, entry.key.bucket, entry.key.dtype, entry.key.device,
                 measured ? format_ns(entry.time_ms * 1e6) : "-",
                 measured && entry.default_time_ms > 0
                     ? fmt::format("{:.2f}x", entry.default_time_ms / entry.time_ms)
                     : "-",
                 entry.verified ? "verified" : "unverified", entry.config.text()});
    }
    context.print(table.render(context.terminal));
    return kExitOk;
  }

 private:
  CacheFlag cache_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_ls_command() { return std::make_unique<CacheLs>(); }

}  // namespace purlin::cli
