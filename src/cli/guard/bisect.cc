// SPDX-License-Identifier: Apache-2.0
// `purlin guard bisect`: names the commit that made a kernel slower.
#include "guard/bisect/bisect.h"

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/guard/device.h"
#include "cli/guard/suite_run.h"
#include "cli/guard/workload.h"
#include "guard/arms/worktree.h"
#include "model/document.h"

#include <optional>

namespace purlin::cli {
namespace {

Json effect_json(const guard::Effect& effect) {
  return Json::object({{"ratio", effect.ratio},
                       {"low", effect.low},
                       {"high", effect.high},
                       {"pairs", effect.pairs}});
}

class GuardBisect : public Command {
 public:
  std::string_view name() const override { return "guard bisect"; }
  std::string_view summary() const override { return "Name the commit that made a kernel slower"; }
  VerbText text() const override {
    return {
        .description =
            "Searches the commits between the revisions GOOD and BAD, along first parents. --build "
            "builds each commit in a separate worktree. The bisection runs --suite, or the command "
            "after `--`, which prints its times. With --journal, a killed bisection continues.",
        .more =
            "The gate first shows that BAD is slower than GOOD. Each step measures a commit "
            "against GOOD in randomised pairs of processes. The full gate then confirms the "
            "culprit against its parent. A commit that does not build or run is skipped.",
        .examples = {{"purlin guard bisect v1.2 HEAD --build 'make -j' -- ./bench --csv"}},
        .exit_codes = {{0, "The culprit is named and confirmed"},
                       {2, "Error"},
                       {3, "BAD is not clearly slower, or the result is a range of commits"}},
        .see = {"docs/guide/guard.md"}};
  }
  void declare(Flags& flags) override {
    flags.positional("GOOD", good_, "Revision that was fast");
    flags.positional("BAD", bad_, "Later revision that is slow");
    workload_.declare(flags);
    flags.option("--filter", filter_, "Only items that match, such as *gemm*", "GLOB");
    flags.option("--pairs", pairs_,
                 "Pairs of processes per step (default: as many as the noise needs)");
    flags.option("--journal", journal_, "File of the steps; a killed bisection continues from it",
                 "FILE");
    flags.option("--detectable", thresholds_.detectable, "Slowdown that must be found");
    flags.option("--floor", thresholds_.floor, "Slowdown below which no item is a regression");
    watched_.declare(flags);
    flags.flag("--json", json_,
               {"Print one JSON document", "The schema is purlin.guard-bisect/1."});
  }

  Result<int> run(Context& context) override {
    if (pairs_ != 0 && (pairs_ < 5 || pairs_ > 400))
      return error(Code::kInvalid, "--pairs takes 5 to 400, not {}", pairs_);
    if (!(thresholds_.floor >= 0 && thresholds_.floor < thresholds_.detectable))
      return error(Code::kInvalid, "--floor ({}) must lie between 0 and --detectable ({})",
                   thresholds_.floor, thresholds_.detectable);
    PURLIN_ASSIGN(guard::Workload workload, workload_.open(false));
    PURLIN_TRY(watched_.open(context, workload.device));
    const std::string& repository = workload_.repository();
    PURLIN_ASSIGN(const std::string good, guard::resolve_commit(repository, good_));
    PURLIN_ASSIGN(const std::string bad, guard::resolve_commit(repository, bad_));
    PURLIN_ASSIGN(const std::vector<std::string> commits,
                  guard::commits_between(repository, good, bad));
    PURLIN_ASSIGN(const std::string work, workload_.open_work(context, workload));
    const Result<guard::Bisection> found = bisect(context, workload, commits, work);
    workload_.clean_up(context);
    if (!found.is_ok()) return found.status();
    context.print(json_ ? document(*found, workload).dump(2) + "\n"
                        : text(*found, context.terminal));
    return found->confirmed ? kExitOk : kExitInconclusive;
  }

 private:
  Result<guard::Bisection> bisect(Context& context, const guard::Workload& workload,
                                  const std::vector<std::string>& commits,
                                  const std::string& work) {
    Random random = unguessable_random();
    std::optional<Progress> progress;
    progress.emplace(stderr, context.error_terminal, !context.quiet);
    guard::BisectSetup setup{
        .commits = commits,
        .open = [&](const std::string& commit) -> Result<guard::Contender> {
          PURLIN_ASSIGN(const guard::Variant variant, workload_.revision(context, commit, work));
          return guard::make_contender(workload, variant);
        },
        .close =
            [&](const std::string& commit) {
              // Many steps measure against the two ends.
              if (commit == commits.front() || commit == commits.back()) return;
              (void)guard::remove_worktree(workload_.repository(), join_path(work, commit));
            },
        .design = workload.suite ? workload.suite->design : guard::Design{},
        .thresholds = thresholds_,
        .filter = filter_,
        .pairs = pairs_,
        .identity = workload_.identity(),
        .journal = journal_,
        .environment = GuardWorkload::environment(workload),
        .options = {},
        .say =
            [&](const std::string& line) {
              progress.reset();
              context.log.info("{}", line);
              progress.emplace(stderr, context.error_terminal, !context.quiet);
            },
        .random = random,
        .clock = system_clock()};
    setup.options.watch = watched_.watch();
    setup.options.locked_mhz = watched_.locked_mhz();
    setup.options.progress = [&](const guard::PairProgress& at) {
      if (progress) progress->update(guard_progress_line(at));
    };
    return guard::bisect(setup);
  }

  std::string described(const std::string& commit) const {
    const Result<std::string> text = guard::describe_commit(workload_.repository(), commit);
    return text.is_ok() ? *text : commit.substr(0, 12);
  }

  std::string text(const guard::Bisection& found, const Terminal& terminal) const {
    if (!found.nothing_to_find.empty()) return found.nothing_to_find + "\n";
    const guard::Effect& whole = found.whole.effect;
    std::string text = fmt::format("{}: {:.3f}x [{:.3f}, {:.3f}] over the whole range\n",
                                   found.item.text(), whole.ratio, whole.low, whole.high);
    const guard::Effect& step = found.confirmation.effect;
    if (found.confirmed) {
      text += terminal.paint(Style::kRed, "culprit: " + described(found.bad)) + "\n";
      text += fmt::format(
          "confirmed against its parent: {:.3f}x [{:.3f}, {:.3f}], p = {:.2g}, {} "
          "pairs\n",
          step.ratio, step.low, step.high, step.p_slower, found.confirmation.pairs);
      return text + into_branch(found.bad);
    }
    if (found.candidates.size() == 1) {
      text += terminal.paint(Style::kYellow, "somewhere near: " + described(found.bad)) + "\n";
      text +=
          fmt::format("the gate did not confirm it against its parent: {}{}\n",
                      guard::verdict_name(found.confirmation.verdict),
                      found.confirmation.reason.empty() ? "" : ", " + found.confirmation.reason);
      return text;
    }
    text += terminal.paint(Style::kYellow,
                           fmt::format("one of {} commits, of which all but the last could not be "
                                       "built or run:",
                                       found.candidates.size())) +
            "\n";
    for (const std::string& commit : found.candidates) text += "  " + described(commit) + "\n";
    return text;
  }

  // How to go on where the culprit is a merge.
  std::string into_branch(const std::string& commit) const {
    const std::optional<guard::MergedBranch> branch =
        guard::merged_branch(workload_.repository(), commit);
    if (!branch) return "";
    return fmt::format(
        "it merges a branch of {}; to go into it, bisect from {} to {}:\n"
        "  purlin guard bisect {} {} and the other options of this command\n",
        counted(branch->commits, "commit"), branch->base.substr(0, 12), branch->tip.substr(0, 12),
        branch->base, branch->tip);
  }

  Json merge_json(const guard::Bisection& found) const {
    if (found.candidates.size() != 1) return {};
    const std::optional<guard::MergedBranch> branch =
        guard::merged_branch(workload_.repository(), found.bad);
    if (!branch) return {};
    return Json::object(
        {{"base", branch->base}, {"tip", branch->tip}, {"commits", branch->commits}});
  }

  Json document(const guard::Bisection& found, const guard::Workload& workload) const {
    Json json = new_document("purlin.guard-bisect/1", GuardWorkload::environment(workload));
    json.set("outcome", !found.nothing_to_find.empty() ? "nothing_to_find"
                        : found.confirmed              ? "culprit"
                        : found.candidates.size() == 1 ? "unconfirmed"
                                                       : "range");
    json.set("message", found.nothing_to_find);
    json.set("item", Json::object({{"kernel", found.item.kernel},
                                   {"shape", found.item.shape},
                                   {"variant", found.item.variant}}));
    json.set("whole", effect_json(found.whole.effect));
    json.set("culprit", found.candidates.size() == 1 ? Json(found.bad) : Json());
    json.set("merged_branch", merge_json(found));
    json.set("candidates", Json::array_of(found.candidates));
    json.set("confirmation",
             Json::object({{"verdict", guard::verdict_name(found.confirmation.verdict)},
                           {"reason", found.confirmation.reason},
                           {"effect", effect_json(found.confirmation.effect)},
                           {"pairs", found.confirmation.pairs}}));
    Json steps = Json::array();
    for (const guard::BisectStep& step : found.steps)
      steps.push(Json::object({{"commit", step.commit},
                               {"result", step.probe == guard::Probe::kGood  ? "good"
                                          : step.probe == guard::Probe::kBad ? "bad"
                                                                             : "untriable"},
                               {"reason", step.reason},
                               {"effect", effect_json(step.effect)}}));
    json.set("steps", std::move(steps));
    json.set("measurement", guard::to_json(found.measurement));
    json.set("seconds", found.seconds);
    return json;
  }

  GuardWorkload workload_;
  GuardDevice watched_;
  guard::Thresholds thresholds_;
  std::string good_, bad_, filter_, journal_;
  int pairs_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_guard_bisect_command() { return std::make_unique<GuardBisect>(); }

}  // namespace purlin::cli
