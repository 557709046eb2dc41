// SPDX-License-Identifier: Apache-2.0
// `purlin backlog`: what to tune or validate next.
#include "cache/backlog.h"

#include "base/text.h"
#include "cache/store.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/work_backlog.h"
#include "model/document.h"

namespace purlin::cli {
namespace {

class BacklogCommand : public Command {
 public:
  std::string_view name() const override { return "backlog"; }
  std::string_view summary() const override { return "List what to tune or validate next"; }
  std::string_view details() const override {
    return "The gate queues a re-tune when a cached winner became slower, and a validation of a\n"
           "suite's cached winners when the device, driver or toolkit is no longer the one they "
           "were\n"
           "measured on. Programs that use the cache add what they launch untuned (tune) or with "
           "a\n"
           "winner of another driver or toolkit (validate), with the number of launches; that "
           "goes\n"
           "by itself once there is an entry. Tasks lie beside the config cache\n"
           "(docs/formats/backlog.md, docs/formats/worklist.md).\n\n"
           "Example: purlin backlog; purlin tune --backlog 3; purlin backlog --done ID\n"
           "Exit codes: 0 listed, 2 error.";
  }
  void declare(Flags& flags) override {
    flags.option("--cache", cache_, "The config cache's directory", "DIR");
    flags.list("--done", done_, "Take this task off the list; may be repeated", "ID");
    flags.flag("--json", json_, "Print one JSON document (purlin.backlog-list/1)");
  }
  Result<int> run(Context& context) override {
    const std::string directory = cache_.empty() ? cache::Store::default_directory() : cache_;
    for (const std::string& id : done_) PURLIN_TRY(cache::finish(directory, id));
    PURLIN_ASSIGN(const std::vector<cache::Task> tasks, all_tasks(context, directory));
    if (json_) {
      Json document = new_document("purlin.backlog-list/1", host_environment());
      Json list = Json::array();
      for (const cache::Task& task : tasks) list.push(cache::to_json(task));
      document.set("tasks", std::move(list));
      context.print(document.dump(2) + "\n");
      return kExitOk;
    }
    if (tasks.empty()) {
      context.print("nothing to do\n");
      return kExitOk;
    }
    Table table;
    table.column("id");
    table.column("do");
    table.column("kernel");
    table.column("shape");
    table.column("device");
    table.column("launches", Table::Align::kRight);
    table.column("slower", Table::Align::kRight);
    table.column("why");
    for (const cache::Task& task : tasks)
      table.row({task.id(), task.kind, task.kernel, task.shape, task.device,
                 task.launches > 0 ? std::to_string(task.launches) : "-",
                 task.ratio > 0 ? fmt::format("{:.2f}x", task.ratio) : "-", task.reason});
    context.print(table.render(context.terminal));
    return kExitOk;
  }

 private:
  std::string cache_;
  std::vector<std::string> done_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_backlog_command() { return std::make_unique<BacklogCommand>(); }

}  // namespace purlin::cli
