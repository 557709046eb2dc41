// SPDX-License-Identifier: Apache-2.0
// Work whose inputs no step changes, as far as sizes tell: what follows from constants alone, and
// large operands that are prepared before their product.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr std::string_view kMakers[] = {"aten::arange", "aten::linspace", "aten::logspace",
                                        "aten::eye"};
constexpr std::size_t kFewestMade = 3;
constexpr double kSliced = 0.05;  // of an array, that a slice leaves out at most
// What no data enters is made once; the program may need other sizes now and then.
constexpr Interval3 kConstant = {0.6, 0.95, 1};
// No kernel writes an array of that size; whether each step reads the same one was not recorded.
constexpr Interval3 kPrepared = {0, 0.9, 1};
constexpr double kMuchLarger = 16;  // times the operand that is data

class Again {
 public:
  Again(Walk& walk, Advice& advice) : walk_(walk), advice_(advice), trains_(walk.trains()) {}

  void run() {
    if (walk_.known().unchanged) return;
    for (const Launches& run : walk_.runs()) {
      constants(run);
      if (!trains_) prepared(run);
    }
    add(constant_, kConstant, "kernels that follow from arange, linspace or eye alone",
        "no data enters them, so each step makes the same", "C");
    if (!prepared_.empty() && writes_elsewhere().empty())
      add(prepared_, kPrepared, "kernels that prepare an operand from arrays that no step writes",
          "each step reads the same arrays: check that, the low estimate is 0", "D");
  }

 private:
  bool only_copies(const Launches& chain) const {
    return std::all_of(chain.begin(), chain.end(),
                       [&](std::uint32_t one) { return walk_.stat(one).name.op_class == "copy"; });
  }

  // Sizes that a chain of constants has made; a maker's own size may not be known.
  struct Sizes {
    std::set<double> made;
    int unknown = 0;

    bool take(const Touch& touch) {
      const double n = touch.n;
      const bool sliced = std::any_of(made.begin(), made.end(), [n](double one) {
        return (n <= one && n >= (1 - kSliced) * one) || 2 * n == one;
      });
      if (!sliced && touch.inputs < 1 && crosses(n)) return true;
      const bool filled = touch.read <= touch.in_size;  // a single value, or none
      if (!sliced && !filled) {
        if (unknown == 0 || touch.inputs < 1) return false;
        --unknown;
      }
      made.insert(n);
      return true;
    }
    // Spread from two vectors, of which the second may be of a maker's unknown size.
    bool crosses(double n) {
      for (const bool known : {true, false})
        for (const double one : made) {
          if (one <= 1 || std::fmod(n, one) != 0) continue;
          if (known ? !made.contains(n / one) : unknown == 0) continue;
          unknown -= known ? 0 : 1;
          made.insert({n, n / one});
          return true;
        }
      return false;
    }
  };

  void constants(const Launches& run) {
    for (std::size_t at = 0; at < run.size(); ++at) {
      if (!makes(run[at]) || walk_.taken(run[at])) continue;
      Sizes sizes;
      std::size_t end = at;
      for (; end < run.size() && !walk_.taken(run[end]); ++end) {
        const Touch& touch = walk_.touch(run[end]);
        if (makes(run[end]))
          touch.n > 0 ? static_cast<void>(sizes.made.insert(touch.n))
                      : static_cast<void>(++sizes.unknown);
        else if (touch.kind != TouchKind::kPointwise || !sizes.take(touch))
          break;
      }
      if (end - at >= kFewestMade)
        constant_.insert(constant_.end(), run.begin() + static_cast<std::ptrdiff_t>(at),
                         run.begin() + static_cast<std::ptrdiff_t>(end));
      at = std::max(at, end - 1);
    }
  }
  bool makes(std::uint32_t activity) const {
    return std::find(std::begin(kMakers), std::end(kMakers), walk_.stat(activity).op) !=
           std::end(kMakers);
  }

  // Right before a product: kernels that lead to its second operand, which is much larger than the
  // first, and to nothing else.
  void prepared(const Launches& run) {
    for (std::size_t i = 0; i < run.size(); ++i) {
      const Touch& product = walk_.touch(run[i]);
      if (product.kind != TouchKind::kProduct) continue;
      const double data = product.batch * product.m * product.depth;
      if (product.weights < kMuchLarger * data) continue;
      std::set<double> needed = {product.weights};
      Launches chain;
      bool data_enters = false;
      for (std::size_t k = i; k-- > 0 && !walk_.taken(run[k]);) {
        const Touch& touch = walk_.touch(run[k]);
        if (!needed.contains(touch.out) || !(touch.light() || touch.kind == TouchKind::kProduct))
          break;
        // What is spread from smaller arrays may be data.
        data_enters = data_enters || (touch.kind == TouchKind::kPointwise && touch.inputs < 1);
        chain.push_back(run[k]);
        if (touch.light()) needed.insert(touch.n);
        // A vector of it, such as a norm's result, is read as well.
        if (touch.kind == TouchKind::kPointwise && touch.inputs > 1 && k > 0)
          needed.insert(walk_.touch(run[k - 1]).out < touch.out ? walk_.touch(run[k - 1]).out
                                                                : touch.n);
        if (touch.kind == TouchKind::kProduct) {
          needed.insert(touch.batch * touch.m * touch.depth);
          needed.insert(touch.weights);
        }
      }
      // What only copies is of another rule: another layout or type serves as well.
      if (data_enters || chain.empty() || only_copies(chain) || needed.contains(data)) continue;
      sizes_.insert(product.weights);
      prepared_.insert(prepared_.end(), chain.rbegin(), chain.rend());
    }
  }
  // Kernels outside of the chains that write an array of the operands' size.
  Launches writes_elsewhere() const {
    const std::set<std::uint32_t> chains(prepared_.begin(), prepared_.end());
    Launches out;
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t one : run)
        if (!chains.contains(one) && sizes_.contains(walk_.touch(one).out)) out.push_back(one);
    return out;
  }

  void add(const Launches& work, Interval3 gone, const char* what, const char* assumes,
           const char* confidence) {
    if (work.empty()) return;
    const Facts& facts = walk_.facts();
    Intervention out = reuse_result();
    remove_launches(walk_, work, gone, out);
    for (const std::uint32_t activity : work) name_kernel(walk_.stat(activity), out);
    out.evidence.push_back(
        {what,
         fmt::format("{}{}, {}",
                     counted(in_one_unit(facts, static_cast<double>(work.size())), "launch"),
                     a_unit(facts), short_ns(in_one_unit(facts, walk_.duration(work)))),
         "timeline and shapes"});
    out.evidence.push_back({"one of them", problem_text(walk_.stat(work.front())), "shapes"});
    out.assumptions.emplace_back(assumes);
    out.confidence = confidence;
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  bool trains_;
  std::set<double> sizes_;  // of operands that are prepared
  Launches constant_, prepared_;
};

}  // namespace

const Rule kAgainRule = {{}, [](Walk& walk, Advice& advice) { Again(walk, advice).run(); }};

}  // namespace purlin::analyze
