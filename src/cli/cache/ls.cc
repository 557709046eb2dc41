// SPDX-License-Identifier: Apache-2.0
// `purlin cache ls`: every entry of the cache.
#include "base/text.h"
#include "cache/entry/bucket_regret.h"
#include "cache/store/entry_document.h"
#include "cache/store/retention.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/next_step.h"
#include "cli/tune/target.h"
#include "model/document.h"

#include <algorithm>
#include <map>
#include <set>

namespace purlin::cli {
namespace {

class CacheLs : public Command {
 public:
  std::string_view name() const override { return "cache ls"; }
  std::string_view summary() const override { return "List the stored winners"; }
  VerbText text() const override {
    return {.description =
                "Lists the entry that each key serves. --history adds superseded, demoted and "
                "quarantined entries, with the reason.",
            .more =
                "With --json, each entry has every field, the id of its record, its state and the "
                "statements about it. Where PURLIN_CACHE_QUOTA is set, the output includes the "
                "share of it in use.",
            .examples = {{"purlin cache ls --cache ./cache --history --op gemm"}},
            .exit_codes = {{0, "Listed"}, {2, "Error"}},
            .see = {"docs/guide/cache.md", "docs/formats/cache.md"}};
  }
  void declare(Flags& flags) override {
    cache_.declare(flags);
    flags.flag("--history", history_, "Also list entries that are not served");
    flags.option("--op", op_, "Only entries of this op", "OP");
    flags.flag("--json", json_, "Print one JSON document");
  }

  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const cache::Store store, cache_.open_examined(context.log));
    PURLIN_ASSIGN(const std::vector<Line> lines, read(store));
    PURLIN_ASSIGN(const std::uint64_t quota, cache::cache_quota());
    const std::uint64_t bytes = cache::bytes_in_use(store);
    if (quota > 0 && !json_)
      context.log.info("{} of a quota of {} (PURLIN_CACHE_QUOTA) in use",
                       format_bytes(static_cast<double>(bytes)),
                       format_bytes(static_cast<double>(quota)));
    if (json_) {
      print_json(context, store, lines, bytes, quota);
    } else if (lines.empty() && !op_.empty()) {
      context.log.info("the cache in '{}' has no {} of op '{}'", store.directory(),
                       history_ ? "entry" : "winner", op_);
    } else if (lines.empty()) {
      context.log.info("the cache in '{}' has nothing to list; `purlin tune SPEC` fills it",
                       store.directory());
    } else {
      print_table(context, lines);
      context.print(next_step({"purlin", "cache", "verify", "SPEC"}));
    }
    return kExitOk;
  }

 private:
  struct Line {
    cache::StoredEntry stored;
    bool served = false;  // the one of its key
    std::string standing() const {
      if (cache::is_served(stored.state) && !served) return "superseded";
      return std::string(cache::entry_state_name(stored.state));
    }
    std::string reason() const {
      return stored.statuses.empty() ? "" : stored.statuses.back().reason;
    }
  };

  Result<std::vector<Line>> read(const cache::Store& store) const {
    std::vector<Line> lines;
    for (const cache::StoredEntry& current : store.current()) {
      if (!op_.empty() && current.entry.key.op != op_) continue;
      lines.push_back({current, true});
    }
    if (!history_) return lines;
    std::set<std::string> listed;
    for (const Line& line : lines) listed.insert(line.stored.record);
    // By key, so that a key's history follows what it serves; keys that serve nothing come last.
    std::map<std::string, cache::CacheKey> keys;
    std::vector<std::string> order;
    const auto take = [&](const cache::CacheKey& key) {
      if (keys.emplace(key.id(), key).second) order.push_back(key.id());
    };
    for (const Line& line : lines) take(line.stored.entry.key);
    cache::RecordFilter filter;
    filter.key.op = op_;
    filter.statuses = false;
    PURLIN_TRY(store.each_record(filter, [&](const cache::CacheRecord& record) {
      const Result<Json> json = Json::parse(record.payload);
      if (!json.is_ok()) return true;
      if (const Result<cache::Entry> entry = cache::entry_from_json(*json); entry.is_ok())
        take(entry->key);
      return true;
    }));
    std::vector<Line> all;
    for (const std::string& id : order) {
      PURLIN_ASSIGN(std::vector<cache::StoredEntry> history, store.history(keys.at(id)));
      std::reverse(history.begin(), history.end());
      const std::size_t first = all.size();
      for (cache::StoredEntry& stored : history) {
        const bool served = listed.count(stored.record) > 0;
        all.insert(served ? all.begin() + static_cast<std::ptrdiff_t>(first) : all.end(),
                   Line{std::move(stored), served});
      }
    }
    return all;
  }

  static void print_json(Context& context, const cache::Store& store,
                         const std::vector<Line>& lines, std::uint64_t bytes, std::uint64_t quota) {
    Json document = new_document("purlin.cache/1", host_environment());
    document.set("directory", store.directory());
    report_damage(store, &document);
    document.set("newer_records", store.newer());
    document.set("bytes", bytes);
    document.set("quota_bytes", quota);
    Json list = Json::array();
    for (const Line& line : lines) list.push(cache::entry_document(line.stored, line.served));
    document.set("entries", std::move(list));
    context.print(document.dump(2) + "\n");
  }

  void print_table(Context& context, const std::vector<Line>& lines) const {
    Table table;
    table.column("kernel");
    table.column("bucket");
    table.column("dtype");
    table.column("device");
    table.column("time", Table::Align::kRight);
    table.column("vs default", Table::Align::kRight);
    // Only where somebody measured it.
    const bool regret = std::any_of(lines.begin(), lines.end(), [](const Line& line) {
      return !line.stored.entry.bucket_regret.empty();
    });
    if (regret) table.column("regret", Table::Align::kRight);
    table.column("outputs");
    table.column("state");
    table.column("config");
    if (history_) table.column("why");
    for (const Line& line : lines) {
      const cache::Entry& entry = line.stored.entry;
      const bool measured = entry.time_ms > 0;
      std::vector<std::string> row = {
          entry.key.kernel,
          entry.key.bucket,
          entry.key.dtype,
          entry.key.device,
          measured ? format_ns(entry.time_ms * 1e6) : "-",
          measured && entry.default_time_ms > 0
              ? fmt::format("{:.2f}x", entry.default_time_ms / entry.time_ms)
              : "-"};
      if (regret) {
        const auto worst = cache::worst_regret(entry);
        row.push_back(worst ? fmt::format("{:.2f}", worst->second) : "-");
      }
      for (std::string& cell : std::vector<std::string>{entry.verified ? "verified" : "unverified",
                                                        line.standing(), entry.config.text()})
        row.push_back(std::move(cell));
      if (history_) row.push_back(line.reason());
      table.row(std::move(row));
    }
    context.print(table.render(context.terminal));
  }

  CacheFlag cache_;
  std::string op_;
  bool history_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_ls_command() { return std::make_unique<CacheLs>(); }

}  // namespace purlin::cli
