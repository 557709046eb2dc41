// SPDX-License-Identifier: Apache-2.0
// Gradients that no optimizer takes: of inputs, of weights that stay, of another network that the
// loss passes through. Between two updates, the gradients that autograd accumulates are more than
// the tensors that the optimizer's ops list. Which ones are too many follows from their sizes.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kUnneeded = {
    "Leave out the gradients that no optimizer takes", "hours",
    "PyTorch: inputs without requires_grad; requires_grad_(False) for weights that stay|"
    "PyTorch: detach() what the loss need not pass through, such as a generated picture in the "
    "step of the critic|"
    "PyTorch: requires_grad_(False) for the critic in the step of the generator",
    "make sure that no other code reads these gradients: hooks, penalties, attacks"};

constexpr std::string_view kAccumulates = "torch::autograd::AccumulateGrad";
constexpr std::string_view kOfFilters = "aten::convolution_backward";
// Every optimizer op of these lists each parameter once.
constexpr std::string_view kUpdates[] = {"aten::_fused_adam_", "aten::_fused_adamw_",
                                         "aten::_fused_sgd_", "aten::_fused_adagrad_",
                                         "aten::_foreach_addcdiv_"};
constexpr std::int64_t kListChunk = 65'536;  // elements for a block of such an op's kernels
constexpr std::int64_t kMostPasses = 16;     // backward passes for one update
constexpr std::size_t kMostShapes = 16;      // distinct ones, that are tried in all combinations
constexpr std::ptrdiff_t kMostBehind = 32;   // launches between a gradient and its accumulation
constexpr Interval3 kNotMade = {0.9, 1, 1};  // of what makes them
constexpr Interval3 kPerhapsMade = {0, 0.5, 1};  // for one of two gradients, as it may be

struct Gradient {
  const Op* op = nullptr;
  std::uint32_t shape = 0;
  std::int64_t elements = 0;
};
// What is accumulated between two updates, and what the second one takes.
struct Update {
  std::vector<Gradient> gradients;
  std::int64_t tensors = 0, elements = 0, begin = 0;
  std::int64_t chunks = 0;  // of all its tensors, by the blocks of its kernels
  bool known = true, listed = true;
  bool by_chunks() const { return !listed; }
  std::int64_t size_of(const Gradient& one) const {
    return by_chunks() ? (one.elements + kListChunk - 1) / kListChunk : one.elements;
  }
};

class Unneeded {
 public:
  Unneeded(Walk& walk, Advice& advice) : walk_(walk), facts_(walk.facts()), advice_(advice) {}

  void run() {
    if (!walk_.trains() || walk_.known().reads) return;
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t launch : run)
        if (const Op* op = outermost_op(timeline(), walk_.at(launch), kUpdates);
            op != nullptr && walk_.stat(launch).name.full.find("multi_tensor") != std::string::npos)
          blocks_[op] += static_cast<std::int64_t>(
              facts_.profile->kernels[walk_.at(launch).row].launch.grid[0]);
    for (const Update& update : updates()) look_at(update);
    if (!work_.empty()) add();
  }

 private:
  const Timeline& timeline() const { return facts_.profile->timeline; }
  Problem problem_of_op(const Op& op) const {
    Problem out;
    out.dimensions = dimensions_from_text(name_in(timeline(), op.shape));
    return out;
  }

  std::vector<Update> updates() const {
    std::vector<Update> out;
    std::map<std::uint32_t, Update> open;  // by process
    const auto close = [&](Update& now) {
      if (now.begin > 0 && now.known && !now.gradients.empty()) out.push_back(std::move(now));
      now = {};
    };
    for (const Op& op : timeline().ops) {
      const std::string_view name = name_in(timeline(), op.name);
      if (name == kAccumulates) {
        Update& now = open[op.process];
        if (now.begin > 0) close(now);
        const auto extents = input_extents(timeline(), op);
        const double elements = extents.size() == 1 ? elements_of(extents.front()) : 0;
        now.known = now.known && elements > 0;
        now.gradients.push_back({&op, op.shape, static_cast<std::int64_t>(elements)});
      } else if (named_in(kUpdates, name)) {
        Update& now = open[op.process];
        const Problem problem = problem_of_op(op);
        if (now.begin == 0) now.begin = op.start_ns;
        now.listed = now.listed && problem["tensors"] > 0;
        if (const auto blocks = blocks_.find(&op); blocks != blocks_.end())
          now.chunks += blocks->second;
        now.tensors += problem["tensors"];
        now.elements += problem["n"];
      }
    }
    for (auto& [process, now] : open) close(now);
    return out;
  }

  // By position, whether the optimizer takes a gradient; nothing where all are taken, or where
  // their sizes permit several answers.
  static std::optional<std::vector<bool>> taken_of(const Update& update) {
    if (update.by_chunks()) return by_chunks(update);
    const auto count = static_cast<std::int64_t>(update.gradients.size());
    std::int64_t all = 0;
    for (const Gradient& one : update.gradients) all += one.elements;
    for (std::int64_t passes = kMostPasses; passes > 0; --passes)
      if (count == passes * update.tensors && all == passes * update.elements) return std::nullopt;
    for (std::int64_t passes = kMostPasses; passes > 0; --passes) {
      const std::int64_t many = count - passes * update.tensors,
                         elements = all - passes * update.elements;
      if (many <= 0 || elements <= 0) continue;
      if (passes == 1)
        for (const bool last : {true, false})
          if (auto found = in_a_row(update, many, elements, last)) return found;
      if (auto found = by_shape(update, many, elements, passes)) return found;
    }
    return std::nullopt;
  }
  // The last ones, or the first ones, of a backward pass.
  static std::optional<std::vector<bool>> in_a_row(const Update& update, std::int64_t many,
                                                   std::int64_t elements, bool last) {
    const std::size_t count = update.gradients.size(), some = static_cast<std::size_t>(many);
    std::vector<bool> out(count, true);
    for (std::size_t i = 0; i < some; ++i) {
      const std::size_t at = last ? count - 1 - i : i;
      elements -= update.gradients[at].elements;
      out[at] = false;
    }
    if (elements != 0) return std::nullopt;
    return out;
  }
  // All or none of a shape: what no choice of the right size takes.
  static std::optional<std::vector<bool>> by_shape(const Update& update, std::int64_t many,
                                                   std::int64_t size, std::int64_t passes) {
    struct OfShape {
      std::int64_t count = 0, size = 0;
      std::uint32_t bit = 0;
    };
    std::map<std::uint32_t, OfShape> shapes;
    for (const Gradient& one : update.gradients) {
      OfShape& of = shapes[one.shape];
      of.count += 1;
      of.size += update.size_of(one);
    }
    if (shapes.size() > kMostShapes) return std::nullopt;
    std::vector<OfShape> all;
    for (auto& [shape, of] : shapes) {
      of.bit = 1U << all.size();
      all.push_back(of);
    }
    std::uint32_t perhaps = 0;  // taken in one of the choices at least
    bool found = false;
    for (std::uint32_t choice = 1; choice + 1 < 1U << all.size(); ++choice) {
      std::int64_t count = 0, sum = 0;
      bool even = true;
      for (const OfShape& of : all) {
        const bool left = (choice & of.bit) != 0;
        count += left ? of.count : 0;
        sum += left ? of.size : 0;
        even = even && (left || of.count % passes == 0);
      }
      if (sum != size || !even || (!update.by_chunks() && count != many)) continue;
      found = true;
      perhaps |= ~choice;
    }
    if (!found) return std::nullopt;
    std::vector<bool> out;
    for (const Gradient& one : update.gradients)
      out.push_back((perhaps & shapes[one.shape].bit) != 0);
    if (std::find(out.begin(), out.end(), false) == out.end()) return std::nullopt;
    return out;
  }
  // Of a long list only the chunks are known, of 65,536 elements and less.
  static std::optional<std::vector<bool>> by_chunks(const Update& update) {
    std::int64_t all = 0;
    for (const Gradient& one : update.gradients) all += update.size_of(one);
    if (update.chunks <= 0 || (all % update.chunks == 0 && all / update.chunks <= kMostPasses))
      return std::nullopt;
    return by_shape(update, 0, all - update.chunks, 1);
  }

  // Steps are mostly alike, so the answer for one serves the others.
  const std::optional<std::vector<bool>>& known_taken_of(const Update& update) {
    std::vector<std::int64_t> key = {update.tensors, update.elements, update.chunks,
                                     update.listed ? 1 : 0};
    for (const Gradient& one : update.gradients) {
      key.push_back(one.shape);
      key.push_back(one.elements);
    }
    const auto [found, added] = answers_.try_emplace(std::move(key));
    if (added) found->second = taken_of(update);
    return found->second;
  }

  void look_at(const Update& update) {
    const auto& taken = known_taken_of(update);
    if (!taken) return;
    const auto last_taken = std::find(taken->rbegin(), taken->rend(), true);
    const auto behind = static_cast<std::size_t>(taken->rend() - last_taken);
    const Op& first = *update.gradients.front().op;
    const Launches launches = launched_by(first.process, first.thread);
    Launches work, perhaps;
    std::int64_t not_taken = 0, elements = 0;
    for (std::size_t i = 0; i < update.gradients.size(); ++i) {
      if ((*taken)[i]) continue;
      const Gradient& one = update.gradients[i];
      if (is_read(one, update)) return;
      not_taken += 1;
      elements += one.elements;
      if (i < behind) makes(launches, end_of(*one.op), one.elements, work, perhaps);
    }
    // What follows the last gradient that is taken is for others only.
    if (behind > 0 && behind < update.gradients.size()) {
      const std::int64_t from = end_of(*update.gradients[behind - 1].op);
      double n = 0;
      const auto later =
          std::partition_point(launches.begin(), launches.end(),
                               [&](std::uint32_t launch) { return call_of(launch) < from; });
      for (auto at = later; at != launches.end() && call_of(*at) < update.begin; ++at) {
        const std::uint32_t launch = *at;
        if (!in_backward(timeline(), walk_.at(launch))) continue;
        if (work.empty() || n == 0)
          n = walk_.at(launch).kind == ActivityKind::kKernel ? walk_.touch(launch).n : 0;
        work.push_back(launch);
      }
      // The gradient of the input of the layer before is, too.
      if (n > 0) makes(launches, from, static_cast<std::int64_t>(n), work, perhaps);
    }
    keep(work, work_);
    keep(perhaps, perhaps_);
    if (not_taken_ == 0) {
      not_taken_ = not_taken;
      elements_ = elements;
      takes_ = update.by_chunks()
                   ? fmt::format("{} in all, by the blocks of its kernels",
                                 counted(static_cast<double>(update.chunks), "chunk"))
                   : fmt::format("{} of {}", counted(static_cast<double>(update.tensors), "tensor"),
                                 si(static_cast<double>(update.elements), ""));
    }
  }
  void keep(const Launches& from, Launches& to) {
    for (const std::uint32_t launch : from) {
      if (walk_.taken(launch)) continue;
      walk_.take({&launch, 1});
      to.push_back(launch);
    }
  }

  std::int64_t call_of(std::uint32_t launch) const {
    return timeline().calls[walk_.at(launch).call].start_ns;
  }
  // Of one thread, as the host launched them.
  const Launches& launched_by(std::uint32_t process, std::uint32_t thread) {
    Launches& out = by_thread_[{process, thread}];
    if (!out.empty()) return out;
    for (std::uint32_t i = 0; i < timeline().activities.size(); ++i) {
      const Activity& one = walk_.at(i);
      if (one.call >= timeline().calls.size() || one.kind == ActivityKind::kSet) continue;
      const Call& call = timeline().calls[one.call];
      if (call.process == process && call.thread == thread) out.push_back(i);
    }
    std::stable_sort(out.begin(), out.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return call_of(a) < call_of(b); });
    return out;
  }

  // A kernel outside of the backward pass, later in the step, that takes as many elements.
  bool is_read(const Gradient& gradient, const Update& update) {
    const auto n = static_cast<double>(gradient.elements);
    if (n < 2) return false;
    const Launches& readers = readers_of(gradient.op->process);
    const auto from = std::partition_point(
        readers.begin(), readers.end(),
        [&](std::uint32_t launch) { return call_of(launch) < end_of(*gradient.op); });
    for (auto at = from; at != readers.end() && call_of(*at) < update.begin; ++at)
      if (walk_.touch(*at).n == n) return true;
    return false;
  }
  // Kernels of a process, outside of backward passes, that may read a gradient and no more.
  const Launches& readers_of(std::uint32_t process) {
    const auto [found, added] = readers_.try_emplace(process);
    Launches& out = found->second;
    if (!added) return out;
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t launch : run) {
        const Activity& one = walk_.at(launch);
        if (one.call < timeline().calls.size() && one.process == process &&
            walk_.touch(launch).light() && !in_backward(timeline(), one) &&
            walk_.stat(launch).name.full.find("FillFunctor") == std::string::npos)
          out.push_back(launch);
      }
    std::stable_sort(out.begin(), out.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return call_of(a) < call_of(b); });
    return out;
  }

  // The launches that make a gradient of so many elements, before a time of the host.
  void makes(const Launches& launches, std::int64_t before, std::int64_t elements, Launches& work,
             Launches& perhaps) const {
    const auto end =
        std::partition_point(launches.begin(), launches.end(),
                             [&](std::uint32_t launch) { return call_of(launch) < before; });
    const auto n = static_cast<double>(elements);
    for (auto at = end; at != launches.begin() && end - at < kMostBehind;) {
      const std::uint32_t launch = *--at;
      if (walk_.at(launch).kind != ActivityKind::kKernel) continue;
      if (!in_backward(timeline(), walk_.at(launch))) return;
      const Touch& touch = walk_.touch(launch);
      const Op* filters = outermost_op(timeline(), walk_.at(launch), {&kOfFilters, 1});
      if (filters != nullptr) {
        if (of_convolution(launches, at - launches.begin(), *filters, n, work, perhaps)) return;
      } else if (touch.kind == TouchKind::kPointwise && touch.out == n) {
        work.push_back(launch);
      } else if ((touch.kind == TouchKind::kProduct && touch.n == n) ||
                 (touch.kind == TouchKind::kReduction && touch.out == n && touch.n > n)) {
        work.push_back(launch);
        return;
      }
    }
  }
  // Of the kernels of a convolution's gradients, those of one that has so many elements.
  bool of_convolution(const Launches& launches, std::ptrdiff_t at, const Op& op, double n,
                      Launches& work, Launches& perhaps) const {
    const Problem p = problem_of_op(op);
    const auto of = [&](std::string_view name) {
      return static_cast<double>(std::max<std::int64_t>(1, p[name]));
    };
    if (p["N"] <= 0) return false;
    const bool image = of("N") * of("C") * of("D") * of("H") * of("W") == n;
    const bool filters =
        of("K") * of("C") / of("groups") * of("T") * of("R") * of("S") == n && !image;
    if (!image && !filters) return false;
    Launches made, layouts, unnamed;
    for (std::ptrdiff_t i = at; i >= 0; --i) {
      const std::uint32_t launch = launches[static_cast<std::size_t>(i)];
      if (outermost_op(timeline(), walk_.at(launch), {&kOfFilters, 1}) != &op) break;
      if (walk_.at(launch).kind != ActivityKind::kKernel || walk_.touch(launch).light()) continue;
      const std::string& name = walk_.stat(launch).name.full;
      const bool data = name.find("dgrad") != std::string::npos,
                 weights = name.find("wgrad") != std::string::npos;
      if (image ? data : weights) made.push_back(launch);
      if (!data && !weights)
        (walk_.stat(launch).name.op_class == "layout" ? layouts : unnamed).push_back(launch);
    }
    // Without a name that tells, some of the others may be.
    const Launches& others = made.empty() ? unnamed : layouts;
    work.insert(work.end(), made.begin(), made.end());
    perhaps.insert(perhaps.end(), others.begin(), others.end());
    return true;
  }

  void add() {
    Intervention out = from_remedy(kReduceRemedy, kUnneeded);
    remove_launches(walk_, work_, kNotMade, out);
    if (!perhaps_.empty()) remove_launches(walk_, perhaps_, kPerhapsMade, out);
    for (const std::uint32_t launch : work_)
      if (walk_.at(launch).kind == ActivityKind::kKernel) name_kernel(walk_.stat(launch), out);
    out.evidence.push_back(
        {"gradients that are accumulated for an update, beyond those that the optimizer takes",
         fmt::format("{} of {} elements; it takes {}",
                     counted(static_cast<double>(not_taken_), "tensor"),
                     si(static_cast<double>(elements_), ""), takes_),
         "shapes"});
    out.evidence.push_back(
        {"kernels that make them",
         fmt::format(
             "{}{}, {}", counted(in_one_unit(facts_, static_cast<double>(work_.size())), "launch"),
             a_unit(facts_),
             of_total(in_one_unit(facts_, walk_.duration(work_)), facts_.unit.baseline_ns.mid)),
         "timeline"});
    out.assumptions.emplace_back(
        "no other code reads these gradients; which they are follows from the sizes");
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Launches> by_thread_;
  std::map<std::uint32_t, Launches> readers_;  // by process, as the host launched them
  std::map<std::vector<std::int64_t>, std::optional<std::vector<bool>>> answers_;
  std::map<const Op*, std::int64_t> blocks_;  // of the optimizer's ops
  Launches work_, perhaps_;
  std::int64_t not_taken_ = 0, elements_ = 0;
  std::string takes_;
};

}  // namespace

const Rule kUnneededRule = {{}, [](Walk& walk, Advice& advice) { Unneeded(walk, advice).run(); }};

}  // namespace purlin::analyze
