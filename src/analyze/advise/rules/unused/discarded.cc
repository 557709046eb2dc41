// SPDX-License-Identifier: Apache-2.0
// Work of which the next step keeps little. A softmax or another rising function comes before a
// choice of the greatest elements, rows of a product are added up, or a part of a result is read.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/read_whole.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kChoose = {
    "Choose first: the order is the same before a rising function", "hours",
    "PyTorch: logits.argmax(-1) for logits.softmax(-1).argmax(-1), without a cast to float32|"
    "scores.topk(k) first, then .sigmoid() or .sqrt() of the k values|"
    "a softmax's values of the few: (values - logits.logsumexp(-1, True)).exp()",
    "values that round to equal ones may come in another order"};
constexpr RemedyCase kSumFirst = {
    "Add up first, multiply the sums", "hours",
    "a product is linear: F.linear(x.mean(1), w, b) for F.linear(x, w, b).mean(1)|"
    "a sum over the outputs: x @ w.sum(0) for (x @ w.T).sum(-1)",
    "the sums round in another order; an activation in between does not commute"};

constexpr RemedyCase kCutFirst = {
    "Cut first, compute on the part", "hours",
    "PyTorch: f(x[:, -1]) for f(x)[:, -1]; crop a picture before it is normalised|"
    "what works element by element or row by row gives the same on a part",
    "the rest of the result must not be read elsewhere"};

// Ops that take a part, and those that hand all parts out.
constexpr std::string_view kCutting[] = {"aten::select", "aten::slice", "aten::narrow"};
constexpr std::string_view kDividing[] = {"aten::split", "aten::chunk", "aten::unbind",
                                          "aten::split_with_sizes", "aten::tensor_split"};
constexpr double kMostLeft = 0.25;  // of the elements
constexpr double kManyElements = 1 << 20;
constexpr std::size_t kReadersAfter = 8;  // in which no other part may be read
constexpr Interval3 kRestGone = {0, 0.9, 1};

// Whose order of elements is that of their arguments; and along rows.
constexpr std::string_view kRising[] = {
    "aten::sigmoid", "aten::sigmoid_", "aten::exp",  "aten::exp_",     "aten::exp2",
    "aten::expm1",   "aten::log",      "aten::log_", "aten::log2",     "aten::log10",
    "aten::log1p",   "aten::sqrt",     "aten::tanh", "aten::softplus", "aten::log_sigmoid_forward",
    "aten::sqrt_",   "aten::tanh_",    "aten::atan", "aten::erf"};
constexpr std::string_view kRisingInRows[] = {"aten::_softmax", "aten::_log_softmax",
                                              "aten::_safe_softmax"};
// By one number they keep it too, or the program would choose another way.
constexpr std::string_view kShifting[] = {"aten::div",  "aten::div_", "aten::add",
                                          "aten::add_", "aten::sub",  "aten::sub_"};
constexpr std::string_view kPlaces[] = {"aten::argmax", "aten::argmin", "aten::argsort"};
constexpr std::string_view kValues[] = {"aten::topk", "aten::sort", "aten::kthvalue"};
constexpr std::string_view kEnds[] = {"aten::max", "aten::min", "aten::amax", "aten::amin"};
constexpr std::size_t kReadAgain = 6;  // kernels after a maximum, of which a softmax has one
constexpr Interval3 kOrderGone = {0.9, 1, 1};
// The values of a softmax may be needed, in training for its gradient as well.
constexpr Interval3 kMayBeNeeded = {0, 0.6, 1};

constexpr std::string_view kAddingUp[] = {"aten::mean", "aten::sum"};
constexpr std::string_view kBiases[] = {"aten::add", "aten::add_"};
constexpr std::string_view kMultiplying[] = {"aten::mm", "aten::addmm", "aten::bmm",
                                             "aten::baddbmm"};
constexpr double kFewestAdded = 4;  // rows for each that is left
constexpr Interval3 kSummedCompute = {0.1, 0.3, 0.6}, kSummedMemory = {0.25, 0.6, 0.9};

class Discarded {
 public:
  Discarded(Walk& walk, Advice& advice)
      : walk_(walk),
        timeline_(walk.facts().profile->timeline),
        advice_(advice),
        trains_(walk.trains()),
        sums_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i) {
        chosen(run, i);
        summed(run, i);
        if (!trains_ && !walk_.known().reads) cut(run, i);
      }
    add_chosen(sure_, kOrderGone, "B");
    add_chosen(perhaps_, kMayBeNeeded, "C");
    for (const Chain* chain : sums_.all()) estimate_sum(*chain);
    if (!cut_.empty()) add_cut();
  }

 private:
  double elements_read(std::uint32_t activity) const {
    if (const double n = walk_.touch(activity).n; n > 0) return n;
    Problem problem;
    problem.dimensions = dimensions_from_text(walk_.stat(activity).shape);
    if (problem["n"] > 0) return static_cast<double>(problem["n"]);
    if (problem["rows"] > 0)
      return static_cast<double>(problem["rows"]) * static_cast<double>(problem["cols"]);
    const auto extents = input_extents(timeline_, walk_.at(activity));
    return extents.empty() ? 0 : elements_of(extents[0]);
  }

  // A reduction to the greatest element, after which no kernel reads all of them again, as a
  // softmax written manually does.
  bool ends(const Launches& run, std::size_t at) const {
    const Touch& touch = walk_.touch(run[at]);
    if (touch.kind != TouchKind::kReduction || touch.out >= touch.n) return false;
    for (std::size_t i = at + 1; i < run.size() && i <= at + kReadAgain; ++i)
      if (walk_.touch(run[i]).n == touch.n) return false;
    return true;
  }
  // The kernels before a choice that keep the order of its elements.
  void chosen(const Launches& run, std::size_t at) {
    const std::string_view op = walk_.stat(run[at]).op;
    const bool places = named_in(kPlaces, op);
    if (!places && !named_in(kValues, op) && !(named_in(kEnds, op) && ends(run, at))) return;
    const double n = elements_read(run[at]);
    std::size_t begin = at;
    bool rises = false, in_rows = false;
    while (n > 1 && begin > 0 && !walk_.taken(run[begin - 1])) {
      const Touch& touch = walk_.touch(run[begin - 1]);
      const std::string_view its = walk_.stat(run[begin - 1]).op;
      const bool rows = named_in(kRisingInRows, its);
      const bool alone = touch.kind == TouchKind::kPointwise && touch.inputs <= 1;
      const bool widens = its == "aten::copy_" && touch.out_size() > touch.in_size;
      if (touch.n != n || touch.backward || !(rows || alone)) break;
      if (!rows && !widens && !named_in(kRising, its) && !named_in(kShifting, its)) break;
      rises = rises || rows || named_in(kRising, its);
      in_rows = in_rows || rows;
      --begin;
    }
    if (!rises || read_whole_after(walk_, run, at, n)) return;
    const std::span<const std::uint32_t> work{run.data() + begin, at - begin};
    walk_.take(work);
    Launches& out = trains_ || (in_rows && !places) ? perhaps_ : sure_;
    out.insert(out.end(), work.begin(), work.end());
    chooses_ = op;
  }
  void add_chosen(const Launches& work, Interval3 gone, const char* confidence) {
    if (work.empty()) return;
    const Facts& facts = walk_.facts();
    Intervention out = from_remedy(kReduceRemedy, kChoose);
    remove_launches(walk_, work, gone, out);
    for (const std::uint32_t one : work) name_kernel(walk_.stat(one), out);
    out.evidence.push_back(
        {fmt::format("kernels before {} that keep the order of its elements", chooses_),
         fmt::format(
             "{}{}, {}", counted(in_one_unit(facts, static_cast<double>(work.size())), "launch"),
             a_unit(facts),
             of_total(in_one_unit(facts, walk_.duration(work)), facts.unit.baseline_ns.mid)),
         "timeline and shapes"});
    out.evidence.push_back({"one of them", problem_text(walk_.stat(work.front())), "shapes"});
    out.assumptions.emplace_back(
        "only the order of the elements is used, or the values of the few that are chosen");
    out.confidence = confidence;
    advice_.interventions.push_back(std::move(out));
  }

  // Kernels of one input, element by element or row by row, before a reader of a small part.
  void cut(const Launches& run, std::size_t at) {
    if (at == 0 || walk_.taken(run[at])) return;
    const Touch &reader = walk_.touch(run[at]), &whole = walk_.touch(run[at - 1]);
    const double n = whole.n;
    if (!reader.light() || n < kManyElements || reader.n > kMostLeft * n || reader.n < 2 ||
        std::fmod(n, reader.n) != 0 || ops_before(timeline_, walk_.at(run[at]), kCutting).empty() ||
        !ops_before(timeline_, walk_.at(run[at]), kDividing).empty())
      return;
    if (read_whole_after(walk_, run, at, n)) return;
    for (std::size_t i = at + 1; i < run.size() && i <= at + kReadersAfter; ++i)
      if (walk_.touch(run[i]).n == n || !ops_before(timeline_, walk_.at(run[i]), kCutting).empty())
        return;
    for (std::size_t i = at; i-- > 0 && !walk_.taken(run[i]);) {
      const Touch& touch = walk_.touch(run[i]);
      const bool alone = touch.kind == TouchKind::kPointwise && touch.inputs == 1;
      if (touch.n != n || touch.out != n || !(alone || touch.kind == TouchKind::kNorm)) break;
      cut_.push_back(run[i]);
      left_ = reader.n / n;
    }
  }
  void add_cut() {
    const Facts& facts = walk_.facts();
    Intervention out = from_remedy(kReduceRemedy, kCutFirst);
    remove_launches(walk_, cut_, kRestGone * (1 - left_), out);
    for (const std::uint32_t one : cut_) name_kernel(walk_.stat(one), out);
    out.evidence.push_back(
        {"kernels of one input before a reader of a part",
         fmt::format("{}{}, {}; {} of the elements are read",
                     counted(in_one_unit(facts, static_cast<double>(cut_.size())), "launch"),
                     a_unit(facts),
                     of_total(in_one_unit(facts, walk_.duration(cut_)), facts.unit.baseline_ns.mid),
                     percent(left_)),
         "timeline, shapes and ops of the host"});
    out.assumptions.emplace_back("no other kernel reads the rest: the low estimate is 0");
    out.confidence = "D";
    advice_.interventions.push_back(std::move(out));
  }

  bool same_op(std::uint32_t a, std::uint32_t b) const {
    return analyze::same_op(timeline_, walk_.at(a), walk_.at(b));
  }
  // A product, perhaps a bias, and a sum over its rows or columns.
  void summed(const Launches& run, std::size_t at) {
    const Touch& product = walk_.touch(run[at]);
    if (product.kind != TouchKind::kProduct || walk_.taken(run[at]) ||
        !named_in(kMultiplying, walk_.stat(run[at]).op))
      return;
    // The first one of an op has looked at the others: an op may have thousands.
    if (at > 0 && same_op(run[at - 1], run[at]) &&
        walk_.touch(run[at - 1]).kind == TouchKind::kProduct)
      return;
    const auto adds_bias = [&](std::uint32_t one) {
      const Touch& touch = walk_.touch(one);
      return touch.kind == TouchKind::kPointwise && touch.n == product.n && touch.inputs <= 1 &&
             named_in(kBiases, walk_.stat(one).op);
    };
    std::size_t i = at + 1;
    while (i < run.size() && (same_op(run[at], run[i]) || adds_bias(run[i]))) ++i;
    if (i == run.size() || walk_.taken(run[i])) return;
    const Touch& sum = walk_.touch(run[i]);
    if (sum.kind != TouchKind::kReduction || !named_in(kAddingUp, walk_.stat(run[i]).op) ||
        sum.n != product.n || sum.out <= 1 || sum.out * kFewestAdded > sum.n ||
        in_backward(timeline_, walk_.at(run[at])))
      return;
    const bool rows = std::fmod(sum.out, product.columns) == 0;
    if (!rows && sum.out != product.batch * product.m) return;
    while (i + 1 < run.size() && same_op(run[i], run[i + 1])) ++i;
    if (read_whole_after(walk_, run, i, product.n)) return;
    const std::span<const std::uint32_t> group{run.data() + at, i + 1 - at};
    walk_.take(group);
    sums_.add(group);
  }
  void estimate_sum(const Chain& chain) {
    const Facts& facts = walk_.facts();
    const Touch& product = walk_.row_touch(chain.rows.front());
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.front()]];
    double out_elements = product.n;
    for (const std::uint32_t row : chain.rows)
      if (walk_.row_touch(row).kind == TouchKind::kReduction)
        out_elements = std::min(out_elements, walk_.row_touch(row).out);
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.flops <= 0 || peaks.bandwidth <= 0) return;
    const double left = out_elements / product.n;
    const Interval3 after = each_scenario([&](const auto& of) {
      return kLeastLaunch + roof_ns(peaks, product.flops() * left,
                                    product.read + 2 * left * product.written, of(kSummedCompute),
                                    of(kSummedMemory));
    });
    Intervention out = from_remedy(kReduceRemedy, kSumFirst);
    out.evidence.push_back({"a product whose result is only added up",
                            fmt::format("{}; {} of {} elements are left", problem_text(kernel),
                                        si(out_elements, ""), si(product.n, "")),
                            "shapes"});
    put_chain(facts, chain, after, 2, "no other kernel reads the product itself", "B",
              std::move(out), advice_);
  }

  Walk& walk_;
  const Timeline& timeline_;
  Advice& advice_;
  bool trains_;
  std::string_view chooses_;
  Launches sure_, perhaps_, cut_;
  double left_ = 1;  // of what is cut
  Chains sums_;
};

}  // namespace

const Rule kDiscardedRule = {{}, [](Walk& walk, Advice& advice) { Discarded(walk, advice).run(); }};

}  // namespace purlin::analyze
