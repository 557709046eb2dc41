// SPDX-License-Identifier: Apache-2.0
// The host waits for the device, and launches the next work only then.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/host/masks.h"
#include "analyze/advise/rules/host/reads.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/streams.h"
#include "base/text.h"
#include "model/problem/problem.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr double kSynchronised = 0.02;  // share of the unit
constexpr double kByReplay = 0.05;      // of it, that goes with the waits
// Few programs need what they wait for several times in a step: most such waits are of logging.
constexpr double kManyWaits = 3;
constexpr Interval3 kMost = {0, 0.8, 1};
// Of values that are read in a row: the host may stop to read before the last. What it does between
// two of them stays, or goes with a loop that becomes one op.
constexpr Interval3 kJoined = {0.8, 1, 1}, kBetween = {0, 0.5, 1};
// Small kernels for each value that the host no longer reads, at worst, and their time, ns.
constexpr double kInstead = 2, kSmallKernel = 2'000, kMostInstead = 0.15;
// An op that needs a value for its own size, copies and reads in a row are replaced with the code
// around them. Programs gained up to this part of the step more by that. Where almost all waits
// are for values that the program reads one by one, nothing else went, but with a test the host's
// code for it.
constexpr double kBesides = 0.27, kBesidesTests = 0.09, kAlmostAll = 0.8;

// A reduction of errors or magnitudes to one value is a test, or for a log. A dot product is not.
constexpr std::string_view kOfErrors[] = {"aten::sub",  "aten::abs",  "aten::linalg_vector_norm",
                                          "aten::norm", "aten::amax", "aten::max",
                                          "aten::rsub", "aten::dist"};
constexpr double kManyTests = 4;  // in a step
// Of these kernels and the host's time for them. The product may serve the iteration as well.
constexpr Interval3 kTestsGone = {0, 0.9, 1}, kProductsGone = {0, 0.6, 1};

// Copies to the host, several in each step: the host stands still until each has ended.
std::vector<std::uint32_t> many_copies(const HostView& view) {
  const Profile& profile = *view.facts.profile;
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < profile.timeline.activities.size(); ++i) {
    const Activity& activity = profile.timeline.activities[i];
    if (activity.kind == ActivityKind::kCopy && activity.row < profile.copies.size() &&
        copy_direction(profile.copies[activity.row].kind) == "d2h" &&
        copy_memory(profile.copies[activity.row].kind) != "pinned")
      out.push_back(i);
  }
  const bool many =
      view.unit.kind == "step" && static_cast<double>(out.size()) * view.share >= kManyWaits;
  return many ? out : std::vector<std::uint32_t>();
}

double time_of(const HostView& view, const std::vector<std::uint32_t>& activities) {
  double ns = 0;
  for (const std::uint32_t i : activities)
    ns += static_cast<double>(interval_of(view.facts.profile->timeline.activities[i]).length());
  return ns * view.share;
}

Interval3 rest_of(const Interval3& gone) { return {1 - gone.low, 1 - gone.mid, 1 - gone.high}; }

// The host's time in some reads and the device's work for them go with their waits.
void remove_reads(Reads reads, edit::RemoveCalls edit, Change& change) {
  if (edit.calls.empty()) return;
  const Interval3 left = rest_of(edit.gone);
  if (!reads.when.empty())
    change.edits.emplace_back(edit::ScaleHost{left, std::move(reads.when), kNone});
  if (!reads.work.empty())
    change.edits.emplace_back(edit::Scale{Affected::of(std::move(reads.work)), left});
  change.edits.emplace_back(std::move(edit));
}

// One read for all that are read in a row.
void join_reads(const HostView& view, ReadsInARow row, Intervention& out) {
  if (row.again.empty()) return;
  out.evidence.push_back(
      {"reads with no work for the device since the read before",
       fmt::format("{}{}", counted(static_cast<double>(row.again.size()) * view.share, "read"),
                   view.unit.kind == "step" ? " a step" : ""),
       "timeline"});
  out.assumptions.emplace_back(
      "values that are read in a row can be read at once, such as by .tolist()");
  out.change.edits.emplace_back(edit::ScaleHost{rest_of(kBetween), std::move(row.between), kNone});
  Reads reads = find_reads(*view.facts.profile, row.again);
  remove_reads(std::move(reads), {std::move(row.again), kJoined}, out.change);
}

// A test of how far an iteration is: a reduction to one value that the host reads, what leads to it
// over as many elements, and the product before that.
struct Tests {
  std::vector<std::uint32_t> reductions, products;
  double count = 0;
};
class FindTests {
 public:
  explicit FindTests(const HostView& view)
      : profile_(*view.facts.profile), timeline_(profile_.timeline) {}

  Tests run() {
    const Streams streams(timeline_);
    for (const StreamWork& stream : streams.all())
      for (std::size_t i = 1; i < stream.activities.size(); ++i)
        if (reads(timeline_.activities[stream.activities[i]])) look_at(stream.activities, i);
    return std::move(out_);
  }

 private:
  bool reads(const Activity& one) const {
    return one.kind == ActivityKind::kCopy && one.bytes > 0 && one.bytes <= kReadBytes &&
           one.row < profile_.copies.size() &&
           copy_direction(profile_.copies[one.row].kind) == "d2h";
  }
  Problem problem_of(std::uint32_t activity) const {
    Problem out;
    const Activity& one = timeline_.activities[activity];
    if (one.kind == ActivityKind::kKernel && one.row < profile_.kernels.size())
      out.dimensions = dimensions_from_text(profile_.kernels[one.row].shape);
    return out;
  }
  bool of_errors(std::uint32_t activity) const {
    const std::string& op = profile_.kernels[timeline_.activities[activity].row].op;
    return std::find(std::begin(kOfErrors), std::end(kOfErrors), op) != std::end(kOfErrors);
  }
  void look_at(std::span<const std::uint32_t> work, std::size_t read) {
    std::size_t at = read;
    while (at > 0 && timeline_.activities[work[at - 1]].kind == ActivityKind::kSet) --at;
    if (at == 0) return;
    const Problem reduction = problem_of(work[--at]);
    const std::int64_t n = reduction["n"];
    if (n <= 1 || reduction["out"] != 1) return;
    std::vector<std::uint32_t> found = {work[at]};
    bool errors = of_errors(work[at]);
    for (; at > 0; --at) {
      const Problem before = problem_of(work[at - 1]);
      if (before["n"] != n || before["inputs"] <= 0) break;
      errors = errors || of_errors(work[at - 1]);
      found.push_back(work[at - 1]);
    }
    if (!errors) return;
    out_.count += 1;
    out_.reductions.insert(out_.reductions.end(), found.begin(), found.end());
    if (at == 0) return;
    const Problem product = problem_of(work[at - 1]);
    if (product["M"] > 0 && product["M"] * std::max<std::int64_t>(1, product["N"]) == n)
      out_.products.push_back(work[at - 1]);
  }

  const Profile& profile_;
  const Timeline& timeline_;
  Tests out_;
};

bool trains(const Timeline& timeline) {
  return std::any_of(timeline.names.begin(), timeline.names.end(), [](const std::string& name) {
    return starts_with(name, "autograd::engine::evaluate_function");
  });
}

// Tests in each iteration of a loop: asked now and then, they go.
void remove_tests(const HostView& view, Intervention& out) {
  if (view.unit.kind != "step" || trains(view.facts.profile->timeline)) return;
  Tests tests = FindTests(view).run();
  if (tests.count * view.share < kManyTests) return;
  out.evidence.push_back(
      {"of these, after a reduction of errors to one value",
       fmt::format("{} a step, {} of kernels", counted(tests.count * view.share, "read"),
                   short_ns(time_of(view, tests.reductions) + time_of(view, tests.products))),
       "timeline and shapes"});
  out.assumptions.emplace_back(
      "a test can be made in every tenth iteration, or after a fixed number of them");
  out.how.emplace_back("test in every tenth iteration; the kernels for the test go with the wait");
  out.change.edits.emplace_back(
      edit::Remove{Affected::of(std::move(tests.reductions)), kTestsGone});
  if (!tests.products.empty())
    out.change.edits.emplace_back(
        edit::Remove{Affected::of(std::move(tests.products)), kProductsGone});
}

}  // namespace

void add_syncs_rule(HostView& view) {
  const Timeline& timeline = view.facts.profile->timeline;
  const std::vector<std::uint32_t> copies = many_copies(view);
  const double copied = time_of(view, copies);
  const double waited = view.idle(IdleCause::kSynchronization) + copied;
  // Where the host works on after each wait, the device idles because of that work, though it is
  // late because of the wait: the replay tells.
  const bool by_replay = waited < kSynchronised * view.length;
  if (by_replay && (view.unit.kind != "step" || view.facts.replayer == nullptr)) return;
  std::map<std::uint32_t, double> by_name;
  edit::RemoveCalls edit;
  const std::vector<bool> waiting =
      copies.empty() ? std::vector<bool>() : waits_for_own_copy(*view.facts.profile);
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const Call& call = timeline.calls[i];
    if (!waits_for_device(timeline, call) && (i >= waiting.size() || !waiting[i])) continue;
    edit.calls.push_back(i);
    if (call.name < timeline.names.size()) by_name[call.name] += 1;
  }
  const double waits = static_cast<double>(edit.calls.size()) * view.share;
  if (by_replay && waits < kManyWaits) return;
  ReadsInARow row = reads_in_a_row(timeline);
  if (view.unit.kind != "step" || static_cast<double>(row.again.size()) * view.share < kManyWaits)
    row = {};
  std::erase_if(edit.calls, [&](std::uint32_t call) {
    return std::binary_search(row.again.begin(), row.again.end(), call);
  });
  edit.gone = view.unit.kind == "step" && waits >= kManyWaits ? kMost : kHalf;
  const Interval3 gone = edit.gone;
  Reads reads = find_reads(*view.facts.profile, edit.calls);
  std::vector<std::pair<double, std::uint32_t>> most;
  for (const auto& [name, count] : by_name) most.emplace_back(-count, name);
  std::sort(most.begin(), most.end());
  Intervention out = from_remedy("remove_syncs");
  out.evidence.push_back(
      {"device idle because the host had waited for it", view.part(waited), "timeline"});
  for (std::size_t i = 0; i < std::min<std::size_t>(3, most.size()); ++i)
    out.evidence.push_back({"calls that wait",
                            fmt::format("{} {}", clean(timeline.names[most[i].second]),
                                        counted(-most[i].first, "time")),
                            "timeline"});
  MaskLoops masks = find_mask_loops(view);
  double small = 0;
  for (const Activity& activity : timeline.activities)
    if (activity.kind == ActivityKind::kCopy && activity.bytes > 0 &&
        activity.bytes <= kReadBytes && activity.row < view.facts.profile->copies.size() &&
        copy_direction(view.facts.profile->copies[activity.row].kind) == "d2h")
      small += 1;
  if (small > 0) {
    // Where the host decides by what it reads, the device has to decide instead.
    const double each = launch_cost(view.facts).mid + kSmallKernel;
    const double decisions =
        std::max(0.0, small - static_cast<double>(row.again.size()) - reads.tests - masks.masks);
    out.instead_ns = std::min(kMostInstead * view.unit.baseline_ns.mid,
                              decisions * view.share * kInstead * each);
    out.evidence.push_back(
        {"memcpys to the host of a few bytes, such as .item()", format_count(small), "timeline"});
  }
  if (!copies.empty()) {
    out.evidence.push_back(
        {"copies to the host that it waits for",
         fmt::format("{}{}, {}", counted(static_cast<double>(copies.size()) * view.share, "copy"),
                     view.unit.kind == "step" ? " a step" : "", short_ns(copied)),
         "timeline"});
    out.change.edits.emplace_back(edit::Remove{Affected::of(copies), gone});
  }
  if (!copies.empty() || !row.again.empty() ||
      reads.values < kAlmostAll * static_cast<double>(edit.calls.size()))
    out.besides_ns = kBesides * view.unit.baseline_ns.mid;
  else if (2 * reads.tests > reads.values)
    out.besides_ns = kBesidesTests * view.unit.baseline_ns.mid;
  view.add_longest(IdleCause::kSynchronization, out);
  out.assumptions.emplace_back(
      masks.masks > 0
          ? "the rounds of the loop need not wait for one another: else the waits go, and a round "
            "works on all elements"
      : out.instead_ns > 0
          ? "the wait may be a real dependency; a decision of the host then becomes kernels of the "
            "device: two programs became slower, so the low estimate is a loss"
          : "the wait may be a real dependency, so the low estimate is 0");
  join_reads(view, std::move(row), out);
  remove_reads(std::move(reads), std::move(edit), out.change);
  remove_tests(view, out);
  replace_mask_loops(view, std::move(masks), out);
  if (by_replay) {
    const double saved = view.facts.replayer->saving(out.change).share.mid;
    if (saved < kByReplay) return;
    out.evidence.push_back({"without the waits, the host's work is hidden",
                            fmt::format("{:.0f}% of a step", 100 * saved), "timeline"});
  }
  view.add(std::move(out), gone * waited, waited, "C");
}

}  // namespace purlin::analyze
