// SPDX-License-Identifier: Apache-2.0
// `purlin backlog`: what to tune or validate next.
#include "cache/backlog.h"

#include "base/text.h"
#include "cache/store/store.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/profile/files.h"
#include "cli/profile_backlog.h"
#include "cli/tune/kernels_directory.h"
#include "cli/tune/spec_files.h"
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
           "--profile queues the heaviest kernels of a profile whose problem a spec computes "
           "(--specs,\n"
           "else the sample kernels), with the shapes the program had.\n\n"
           "Example: purlin backlog; purlin tune --backlog 3; purlin backlog --done ID\n"
           "         purlin backlog --profile train.plprof --specs kernels --top 5\n"
           "Exit codes: 0 listed, 2 error.";
  }
  void declare(Flags& flags) override {
    flags.option("--cache", cache_, "The config cache's directory", "DIR");
    flags.list("--done", done_, "Take this task off the list; may be repeated", "ID");
    flags.list("--profile", profiles_, "Queue the heaviest kernels of this profile", "FILE");
    flags.list("--specs", specs_, "Specs that compute them, or folders of specs", "SPEC");
    flags.option("--top", top_, "How many of the profile's kernels are looked at");
    flags.flag("--json", json_, "Print one JSON document (purlin.backlog-list/1)");
  }
  Result<int> run(Context& context) override {
    const std::string directory = cache_.empty() ? cache::Store::default_directory() : cache_;
    for (const std::string& id : done_) PURLIN_TRY(cache::finish(directory, id));
    if (!profiles_.empty()) PURLIN_TRY(queue_profile(context, directory));
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
  Status queue_profile(Context& context, const std::string& directory) {
    if (top_ < 1) return error(Code::kInvalid, "--top takes 1 or more, not {}", top_);
    if (specs_.empty()) {
      PURLIN_ASSIGN(std::string samples, kernels_directory());
      specs_.push_back(std::move(samples));
    }
    PURLIN_ASSIGN(const std::vector<KernelSpec> specs, load_specs(specs_, context.log));
    PURLIN_ASSIGN(const Profile profile, read_profiles(context, profiles_));
    PURLIN_ASSIGN(const cache::Store store, cache::Store::open(directory));
    const ProfileTasks made =
        tasks_of_profile(analyze::build_rows(profile, analyze::GroupBy::kShape), specs,
                         static_cast<std::size_t>(top_), store);
    for (const std::string& line : made.left_out) context.log.info("no job: {}", line);
    context.log.info("{} of the {} heaviest kernels queued", made.tasks.size(),
                     made.tasks.size() + made.left_out.size());
    return made.tasks.empty() ? Status::ok() : cache::queue(directory, made.tasks);
  }

  std::vector<std::string> profiles_, specs_;
  int top_ = 20;
  std::string cache_;
  std::vector<std::string> done_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_backlog_command() { return std::make_unique<BacklogCommand>(); }

}  // namespace purlin::cli
