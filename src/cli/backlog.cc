// SPDX-License-Identifier: Apache-2.0
// `purlin backlog`: the kernels to tune or validate next.
#include "backlog/backlog.h"

#include "analyze/report/report.h"
#include "backlog/file.h"
#include "backlog/profile_tasks.h"
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "cache/store/store.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/profile/files.h"
#include "cli/tune/kernels_directory.h"
#include "cli/tune/shared_tasks.h"
#include "cli/tune/spec_files.h"
#include "fleet/backlog/fleet_tasks.h"
#include "fleet/client/server_client.h"
#include "model/document.h"

#include <algorithm>

namespace purlin::cli {
namespace {

std::vector<backlog::ProfiledKernel> heaviest(const analyze::Report& report, std::size_t top) {
  std::vector<backlog::ProfiledKernel> kernels;
  for (const analyze::KernelStat& row : report.kernels) {
    if (kernels.size() == top) break;
    backlog::ProfiledKernel kernel;
    kernel.label = row.label;
    kernel.full = row.name.full;
    kernel.brief = row.name.brief;
    kernel.op_class = row.name.op_class;
    kernel.family = row.name.family;
    kernel.shape = row.shape;
    kernel.dtype = row.dtype;
    kernel.device = row.device;
    kernel.share = row.share;
    kernel.total_ns = row.duration.total_ns();
    kernel.launches = row.duration.count();
    kernel.utilization = row.roof.utilization;
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

class BacklogCommand : public Command {
 public:
  std::string_view name() const override { return "backlog"; }
  std::string_view summary() const override { return "List kernels to tune or validate next"; }
  VerbText text() const override {
    return {
        .description =
            "The task that can save the most GPU time comes first: GPU time x headroom. A ~ marks "
            "an assumption: 10 us for a launch, 1 launch, a headroom of 20 %.\n\nThe gate queues "
            "a retuning (retune) when a cached winner became slower, and a validation (validate) "
            "when the device, driver or toolkit differs from that of the measurement. Programs "
            "queue kernels that they launch without an entry (tune). --profile queues the hottest "
            "kernels of a profile, with the shapes of the program.",
        .more =
            "Tasks that follow from the launches of programs end by themselves once there is an "
            "entry. The tasks are stored next to the config cache.\n\n--profile queues a kernel "
            "only where a spec computes its problem.",
        .examples = {{"purlin backlog"},
                     {"purlin tune --backlog 3", "Tune the first three tasks"},
                     {"purlin backlog --profile train.plprof --specs kernels --top 5"}},
        .exit_codes = {{0, "Listed"}, {2, "Error"}},
        .see = {"docs/formats/backlog.md", "docs/formats/worklist.md"}};
  }
  void declare(Flags& flags) override {
    flags.option("--cache", cache_, "Directory of the config cache", "DIR");
    flags.list("--done", done_, "Remove this task; repeatable", "ID");
    flags.list("--profile", profiles_, "Queue the hottest kernels of this profile; repeatable",
               "FILE");
    flags.list("--specs", specs_,
               {"Specs for --profile, or folders of specs; repeatable",
                "Without it, the sample kernels are used."},
               "SPEC");
    flags.option("--top", top_, "Kernels of the profile to look at");
    flags.option("--server", server_,
                 {"List the shared backlog of a Purlin server",
                  "Its tasks are the kernels of the fleet with the most GPU time to save."},
                 "URL");
    flags.option("--suite", suite_,
                 {"Write a suite for `purlin guard` of the tasks with a known spec",
                  "--specs names the specs for the kernels of a server."},
                 "FILE");
    flags.flag("--json", json_,
               {"Print one JSON document", "The schema is purlin.backlog-list/1."});
  }
  Result<int> run(Context& context) override {
    const std::string directory = cache_.empty() ? cache::Store::default_directory() : cache_;
    for (const std::string& id : done_) PURLIN_TRY(backlog::finish(directory, id));
    if (!profiles_.empty()) PURLIN_TRY(queue_profile(context, directory));
    PURLIN_ASSIGN(const std::vector<backlog::RankedTask> tasks, list(context, directory));
    if (!suite_.empty()) PURLIN_TRY(write_suite(context, directory, tasks));
    if (json_) {
      Json document = new_document("purlin.backlog-list/1", host_environment());
      Json list = Json::array();
      for (const backlog::RankedTask& task : tasks) list.push(backlog::to_json(task));
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
    table.column("GPU time", Table::Align::kRight);
    table.column("headroom", Table::Align::kRight);
    table.column("task");
    for (const backlog::RankedTask& ranked : tasks)
      table.row(
          {ranked.task.id(), (ranked.time_assumed ? "~" : "") + gpu_time_text(ranked.gpu_time_ns),
           fmt::format("{}{:.0f} %", ranked.headroom_assumed ? "~" : "", ranked.headroom * 100),
           task_text(ranked.task)});
    context.print(table.render(context.terminal));
    return kExitOk;
  }

 private:
  static std::string gpu_time_text(double ns) {
    constexpr double kHour = 3.6e12;
    return ns < kHour ? format_ns(ns) : fmt::format("{:.1f} h", ns / kHour);
  }
  // In a few columns, so that it can be read in 80 of them.
  static std::string task_text(const backlog::Task& task) {
    std::string text = fmt::format("{} {}", task.key.kind, task.key.kernel);
    if (!task.key.shape.empty()) text += " " + task.key.shape;
    if (!task.key.device.empty()) text += " on " + task.key.device;
    if (task.launches > 0) text += fmt::format("; {} launches", task.launches);
    if (task.ratio > 0) text += fmt::format("; {:.2f}x slower", task.ratio);
    return task.reason.empty() ? text : text + "; " + task.reason;
  }
  Result<std::vector<backlog::RankedTask>> list(Context& context,
                                                const std::string& directory) const {
    if (server_.empty()) return backlog::read(directory, context.log);
    PURLIN_ASSIGN(const auto client, fleet::ServerClient::open(server_, system_clock()));
    PURLIN_ASSIGN(const Json answer, client->get("/v1/backlog"));
    std::vector<backlog::RankedTask> tasks;
    for (const Json& task : answer["tasks"].items()) {
      const std::string& state = task["state"].as_string();
      if (state == "open" || state == "leased") tasks.push_back(backlog::ranked_from_json(task));
    }
    return tasks;
  }

  Result<std::vector<KernelSpec>> specs(Context& context) {
    if (specs_.empty()) {
      PURLIN_ASSIGN(std::string samples, kernels_directory());
      specs_.push_back(std::move(samples));
    }
    return load_specs(specs_, context.log);
  }

  // What is hot is guarded: items for the tasks whose spec is known, comments for the others.
  Status write_suite(Context& context, const std::string& directory,
                     const std::vector<backlog::RankedTask>& tasks) {
    PURLIN_ASSIGN(const std::vector<KernelSpec> known, specs(context));
    PURLIN_ASSIGN(const cache::Store store, cache::Store::open(directory));
    double total_ns = 0;
    for (const backlog::RankedTask& ranked : tasks) total_ns += ranked.gpu_time_ns;
    std::vector<fleet::SuggestedItem> items;
    for (const backlog::RankedTask& ranked : tasks) {
      if (items.size() == static_cast<std::size_t>(top_)) break;
      DeviceInfo device;
      device.name = ranked.task.key.device;
      const Result<backlog::Task> found = find_spec(ranked.task, device, known, store);
      fleet::SuggestedItem item;
      item.kernel = ranked.task.key.kernel;
      item.shape = found.is_ok() ? found->key.shape : ranked.task.key.shape;
      item.share = total_ns > 0 ? ranked.gpu_time_ns / total_ns : 0;
      if (found.is_ok())
        item.spec = found->spec;
      else
        item.left_out = found.status().message();
      const bool listed = std::any_of(items.begin(), items.end(), [&](const auto& other) {
        return !item.spec.empty() && other.spec == item.spec && other.shape == item.shape;
      });
      if (!listed) items.push_back(std::move(item));
    }
    return write_atomic(
        suite_, fleet::suggested_suite("fleet", format_rfc3339(system_clock().wall_ns()), items));
  }

  Status queue_profile(Context& context, const std::string& directory) {
    if (top_ < 1) return error(Code::kInvalid, "--top takes 1 or more, not {}", top_);
    PURLIN_ASSIGN(const std::vector<KernelSpec> known, specs(context));
    PURLIN_ASSIGN(const Profile profile, read_profiles(context, profiles_));
    PURLIN_ASSIGN(const cache::Store store, cache::Store::open(directory));
    const analyze::Report report = analyze::build_rows(profile, analyze::GroupBy::kShape);
    const std::vector<backlog::ProfiledKernel> kernels =
        heaviest(report, static_cast<std::size_t>(top_));
    const backlog::ProfileTasks made =
        backlog::profile_tasks(kernels, report.environment.devices, known, store);
    for (const std::string& line : made.left_out) context.log.info("no job: {}", line);
    context.log.info("{} of the {} heaviest kernels queued", kernels.size() - made.left_out.size(),
                     kernels.size());
    return made.tasks.empty() ? Status::ok() : backlog::queue(directory, made.tasks);
  }

  std::vector<std::string> profiles_, specs_;
  int top_ = 20;
  std::string cache_, server_, suite_;
  std::vector<std::string> done_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_backlog_command() { return std::make_unique<BacklogCommand>(); }

}  // namespace purlin::cli
