// SPDX-License-Identifier: Apache-2.0
// The same result computed again: tables that depend on no data (positions, masks), and large equal
// products next to each other.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace purlin::analyze {
namespace {

constexpr Remedy kReuse = {
    "reuse_result",
    "Compute the repeated result once",
    Pillar::kArithmeticIntensity,
    Level::kAlgorithm,
    "compute",
    "hours",
    "low",
    "api-independent",
    "application",
    "compute masks, position tables and projections of one input once, and pass them on|"
    "PyTorch: register_buffer for constants; "
    "torch.compile removes equal expressions within one graph",
    "a result that is changed in place must not be shared"};

constexpr RemedyCase kNormalised = {
    "Make the normalised weights once", "hours",
    "PyTorch: torch.nn.utils.parametrize.remove_parametrizations(layer, \"weight\"), or "
    "torch.nn.utils.remove_weight_norm(layer), once before inference",
    "do it on a copy of the model where training goes on"};

// Ops whose inputs are rarely data: tables of positions and masks.
constexpr std::string_view kTables[] = {"aten::cos",      "aten::sin",    "aten::arange",
                                        "aten::linspace", "aten::triu",   "aten::tril",
                                        "aten::eye",      "aten::one_hot"};
// Weights that follow from other weights alone: outside of training they stay the same.
constexpr std::string_view kOfWeights[] = {"aten::_weight_norm", "aten::_weight_norm_interface",
                                           "aten::norm_except_dim"};
constexpr std::size_t kFewestProducts = 3, kFewestOfConstant = 3;
constexpr double kLargeProduct = 30'000;  // ns; smaller ones are the rule's for batches

class Reuse {
 public:
  Reuse(Walk& walk, Advice& advice) : walk_(walk), advice_(advice) {}

  void run() {
    if (!walk_.known().repeats) guess_repeated();
    if (!walk_.trains() && !walk_.known().unchanged)
      for (const Launches& run : walk_.runs())
        for (const std::uint32_t one : run) weights(one);
    if (!weights_.empty()) add_weights();
    for (const auto& [key, found] : tables_) add_table(found);
    for (const auto& [row, found] : products_) add_product(row, found);
  }

 private:
  struct Found {
    std::string op;
    std::map<int, std::size_t> in_step;  // how often, by step
    Launches work;
  };

  void guess_repeated() {
    for (const Launches& run : walk_.runs()) constants(run);
    for (const auto& [rows, found] : constants_) add_table(found);
    for (const Launches& run : walk_.runs()) {
      for (std::size_t i = 0; i < run.size(); ++i) table(run, i);
      products(run);
      if (!walk_.trains()) bursts(run);  // gradients of layers follow one another
    }
  }

  // What follows from positions alone: kernels that read only what aten::arange has led to, up to
  // a look-up of a table by the result.
  std::size_t end_of_constant(const Launches& run, std::size_t begin) const {
    double n = 0;
    std::size_t end = begin + 1;
    for (; end < run.size(); ++end) {
      const Touch& touch = walk_.touch(run[end]);
      if (const double found = looked_up(run[end]); n > 0 && found >= n)
        return std::fmod(found, n) == 0 ? end + 1 : end;
      const bool of_vectors = touch.inputs < 1 && touch.n >= n;
      if (touch.kind != TouchKind::kPointwise || !(of_vectors || (n > 0 && touch.n == n))) break;
      n = touch.n;
    }
    return end;
  }
  double looked_up(std::uint32_t activity) const {
    Problem problem;
    problem.dimensions = dimensions_from_text(walk_.stat(activity).shape);
    return static_cast<double>(problem["indices"]);
  }
  void constants(const Launches& run) {
    for (std::size_t at = 0; at < run.size(); ++at) {
      if (walk_.stat(run[at]).op != "aten::arange" || walk_.taken(run[at])) continue;
      const std::size_t end = end_of_constant(run, at);
      if (end - at < kFewestOfConstant) continue;
      std::vector<std::size_t> rows;
      for (std::size_t i = at; i < end; ++i)
        rows.push_back(walk_.facts().row_of[walk_.at(run[i]).row]);
      Found& found = constants_[rows];
      found.op = fmt::format("aten::arange and {} after it", counted(rows.size() - 1, "kernel"));
      found.in_step[walk_.step_of(walk_.at(run[at]))]++;
      for (std::size_t i = at; i < end; ++i) found.work.push_back(run[i]);
      at = end - 1;
    }
  }

  static bool is_table(const std::string& op) {
    return std::find(std::begin(kTables), std::end(kTables), op) != std::end(kTables);
  }
  void table(const Launches& run, std::size_t at) {
    const KernelStat& kernel = walk_.stat(run[at]);
    if (!is_table(kernel.op) || kernel.shape.empty() || walk_.taken(run[at])) return;
    const std::size_t row = walk_.facts().row_of[walk_.at(run[at]).row];
    // One after the other they read each other's result.
    const auto row_at = [&](std::size_t i) { return walk_.facts().row_of[walk_.at(run[i]).row]; };
    if ((at > 0 && row_at(at - 1) == row) || (at + 1 < run.size() && row_at(at + 1) == row)) return;
    // A table meets the data in its reader; where that reads nothing else, this is data as well.
    if (at + 1 < run.size() && walk_.touch(run[at + 1]).n == walk_.touch(run[at]).n &&
        walk_.touch(run[at + 1]).kind == TouchKind::kPointwise &&
        walk_.touch(run[at + 1]).inputs < 2)
      return;
    Found& found = tables_[row];
    found.op = kernel.op;
    found.in_step[walk_.step_of(walk_.at(run[at]))]++;
    found.work.push_back(run[at]);
    // What makes the table's input from vectors has its size.
    if (at > 0 && !walk_.taken(run[at - 1]) &&
        walk_.touch(run[at - 1]).n == walk_.touch(run[at]).n &&
        walk_.touch(run[at - 1]).kind == TouchKind::kPointwise &&
        walk_.touch(run[at - 1]).inputs < 1)
      found.work.push_back(run[at - 1]);
  }

  void weights(std::uint32_t one) {
    const Timeline& timeline = walk_.facts().profile->timeline;
    const Op* op = outermost_op(timeline, walk_.at(one), kOfWeights);
    if (op == nullptr || walk_.taken(one)) return;
    walk_.take({&one, 1});
    weights_.push_back(one);
    if (host_.empty() || host_.back().begin != begin_of(*op)) host_.push_back(interval_of(*op));
  }
  void add_weights() {
    const Facts& facts = walk_.facts();
    Intervention out = from_remedy(kReuse, kNormalised);
    remove_launches(walk_, weights_, {0.9, 1, 1}, out);
    out.change.edits.emplace_back(edit::ScaleHost{{0.1, 0, 0}, host_, kNone});
    for (const std::uint32_t one : weights_) name_kernel(walk_.stat(one), out);
    out.evidence.push_back(
        {"weights that are made of other weights, outside of training",
         fmt::format("{}{}, {}",
                     counted(in_one_unit(facts, static_cast<double>(weights_.size())), "launch"),
                     a_unit(facts), short_ns(in_one_unit(facts, walk_.duration(weights_)))),
         "timeline and ops of the host"});
    out.assumptions.emplace_back("no step changes the weights");
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }
  // Equal products in a row, or each followed by one kernel that reads its result; none can read
  // another's.
  void products(const Launches& run) {
    std::size_t begin = 0;
    while (begin < run.size()) {
      const std::size_t stride = read_at_once(run, begin) ? 2 : 1;
      std::size_t end = begin;
      while (end < run.size() && independent(run[end]) &&
             walk_.at(run[end]).row == walk_.at(run[begin]).row &&
             (stride == 1 || read_at_once(run, end)))
        end += stride;
      if (end >= begin + kFewestProducts * stride)
        for (std::size_t i = begin + stride; i < end; i += stride)
          products_[walk_.facts().row_of[walk_.at(run[i]).row]].push_back(run[i]);
      begin = std::max(end, begin + 1);
    }
  }
  // Equal products in several places of a step, and nothing in between writes an array of the size
  // that they read: they may read one and the same.
  void bursts(const Launches& run) {
    struct Seen {
      std::size_t last = 0;
      std::vector<Launches> bursts;
    };
    std::map<std::pair<int, std::size_t>, Seen> seen;  // by step and row
    for (std::size_t i = 0; i < run.size(); ++i) {
      const Touch& touch = walk_.touch(run[i]);
      if (touch.kind != TouchKind::kProduct || walk_.taken(run[i]) ||
          walk_.stat(run[i]).duration.mean_ns() < kLargeProduct)
        continue;
      const std::size_t row = walk_.facts().row_of[walk_.at(run[i]).row];
      Seen& one = seen[{walk_.step_of(walk_.at(run[i])), row}];
      if (one.bursts.empty() || i > one.last + 1) {
        if (!one.bursts.empty() && !untouched(run, one.last + 1, i, touch)) one.bursts.clear();
        one.bursts.emplace_back();
      }
      one.bursts.back().push_back(run[i]);
      one.last = i;
    }
    for (const auto& [key, one] : seen)
      if (one.bursts.size() >= kFewestProducts) again(key.second, one.bursts);
  }
  bool untouched(const Launches& run, std::size_t from, std::size_t to,
                 const Touch& product) const {
    // What no kernel before it reads, the next of a chain of layers does.
    bool read = product.columns != product.depth;
    for (std::size_t i = from; i < to; ++i) {
      const Touch& touch = walk_.touch(run[i]);
      read = read || touch.n == product.n || touch.holds(product.n);
      if (!touch.light() && touch.kind != TouchKind::kProduct) return false;
      const double left = product.batch * product.m * product.depth;
      const double right = product.batch * product.depth * product.columns;
      if (touch.out == left || (product.m == product.depth && touch.out == right)) return false;
    }
    return read;
  }
  void again(std::size_t row, const std::vector<Launches>& bursts) {
    const auto least =
        std::min_element(bursts.begin(), bursts.end(),
                         [](const Launches& a, const Launches& b) { return a.size() < b.size(); });
    std::size_t kept = least->size();
    Launches& out = products_[row];
    for (const Launches& burst : bursts)
      for (const std::uint32_t one : burst)
        if (kept > 0) {
          --kept;
        } else if (std::find(out.begin(), out.end(), one) == out.end()) {
          out.push_back(one);
        }
  }
  bool read_at_once(const Launches& run, std::size_t at) const {
    if (at + 1 >= run.size() || !independent(run[at])) return false;
    const Touch& reader = walk_.touch(run[at + 1]);
    return reader.light() && reader.n == walk_.touch(run[at]).n;
  }
  bool independent(std::uint32_t activity) const {
    const Touch& touch = walk_.touch(activity);
    return touch.kind == TouchKind::kProduct && !may_chain(touch) &&
           walk_.stat(activity).duration.mean_ns() >= kLargeProduct && !walk_.taken(activity);
  }

  void add_table(const Found& found) {
    std::size_t most = 0;
    for (const auto& [step, count] : found.in_step) most = std::max(most, count);
    if (most < 2) return;
    // At least the repetitions within a step go; made once in all, every launch does.
    const double again = 1 - 1 / static_cast<double>(most);
    Intervention out = from_remedy(kReuse);
    remove_launches(walk_, found.work, {0.6 * again, 0.5 * (again + 1), 1}, out);
    for (const std::uint32_t activity : found.work) name_kernel(walk_.stat(activity), out);
    const std::uint32_t last = found.work.back();
    out.evidence.push_back(
        {fmt::format("{} of one size more than once{}", clean(found.op), a_unit(walk_.facts())),
         fmt::format("{}, {} in all", counted(found.work.size(), "launch"),
                     short_ns(walk_.duration(found.work))),
         "timeline and shapes"});
    out.evidence.push_back({"one of them", problem_text(walk_.stat(last)), "shapes"});
    out.assumptions.emplace_back("the table depends on no data, so each launch computes the same");
    out.confidence = "C";
    walk_.take(found.work);
    advice_.interventions.push_back(std::move(out));
  }

  void add_product(std::size_t row, const Launches& work) {
    const KernelStat& kernel = walk_.facts().rows.kernels[row];
    Intervention out = from_remedy(kReuse);
    remove_launches(walk_, work, {0, 0.3, 1}, out);
    name_kernel(kernel, out);
    out.evidence.push_back({"equal products in a step that may read the same arrays",
                            fmt::format("{}: {} more than one", problem_text(kernel),
                                        format_count(static_cast<double>(work.size()))),
                            "timeline and shapes"});
    out.assumptions.emplace_back(
        "the inputs may be the same ones, which was not recorded: the low estimate is 0");
    out.confidence = "D";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Launches weights_;
  std::vector<Interval> host_;
  std::map<std::vector<std::size_t>, Found> constants_;
  std::map<std::size_t, Found> tables_;
  std::map<std::size_t, Launches> products_;
};

}  // namespace

Intervention reuse_result() { return from_remedy(kReuse); }

const Rule kReuseRule = {{&kReuse, 1},
                         [](Walk& walk, Advice& advice) { Reuse(walk, advice).run(); }};

}  // namespace purlin::analyze
