// SPDX-License-Identifier: Apache-2.0
// Weights converted to 16 bits before each product or convolution that reads them.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace purlin::analyze {
namespace {

constexpr Remedy kCast = {
    "cast_weights_once",
    "Keep the weights in the type of the products",
    Pillar::kMemoryEfficiency,
    Level::kAlgorithm,
    "memory",
    "hours",
    "medium",
    "api-independent",
    "framework",
    "PyTorch: for inference, model.to(torch.bfloat16) once instead of autocast around 32-bit "
    "weights|"
    "PyTorch: for training, weights in bfloat16 with 32-bit master weights in the optimizer, or "
    "FSDP's "
    "MixedPrecision; at least cast once a step, not once a use",
    "numerics: 16-bit weights need 32-bit master weights where they are trained"};

constexpr Interval3 kHostPaced = {0.25, 0.85, 1};
constexpr double kPaced = 0.7;    // of the conversions' time
constexpr std::size_t kNear = 4;  // kernels between the conversion and its product

class Casts {
 public:
  Casts(Walk& walk, Advice& advice) : walk_(walk), advice_(advice) {}

  void run() {
    // Outside of training, weights that a step casts are known to be the same in each.
    if (walk_.known().unchanged && !walk_.trains()) return;
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i)
        if (narrows(run[i]) && weights_of_next(run, i)) work_.push_back(run[i]);
    if (work_.empty()) return;
    walk_.take(work_);
    finish();
  }

 private:
  // Whether the device sets the pace: else what goes is mostly the host's, which does other work
  // for the same op.
  bool exposed() const {
    const Facts& facts = walk_.facts();
    double ns = 0, share = 0;
    for (const std::uint32_t one : work_) {
      ns += walk_.duration(one);
      share += walk_.duration(one) * facts.exposure.share[walk_.at(one).row];
    }
    return !facts.exposure.known || share >= kPaced * ns;
  }
  bool narrows(std::uint32_t activity) const {
    const Touch& touch = walk_.touch(activity);
    if (touch.kind != TouchKind::kPointwise || walk_.taken(activity)) return false;
    const double in = touch.read / touch.n, out = touch.written / touch.n;
    return walk_.stat(activity).name.op_class == "copy" && in > 1.5 * out && out >= 1;
  }
  // Its weights, or its bias.
  bool weights_of_next(const Launches& run, std::size_t at) const {
    const double n = walk_.touch(run[at]).n;
    for (std::size_t i = at + 1; i < std::min(run.size(), at + 1 + kNear); ++i) {
      const Touch& touch = walk_.touch(run[i]);
      if (touch.weights > 0 && touch.columns > 1 && (n == touch.weights || n == touch.columns))
        return true;
    }
    return false;
  }
  void finish() {
    Intervention out = from_remedy(kCast);
    const bool training = walk_.trains();
    remove_launches(walk_, work_,
                    training    ? Interval3{0.2, 0.7, 1}
                    : exposed() ? Interval3{0.8, 0.97, 1}
                                : kHostPaced,
                    out);
    std::set<std::size_t> rows;
    double bytes = 0;
    for (const std::uint32_t activity : work_) {
      name_kernel(walk_.stat(activity), out);
      rows.insert(walk_.facts().row_of[walk_.at(activity).row]);
      bytes += walk_.touch(activity).bytes();
    }
    const Facts& facts = walk_.facts();
    out.evidence.push_back(
        {"conversions to a shorter type, as many elements as the next product's weights or bias",
         launches_in_words(walk_, work_), "timeline and shapes"});
    out.evidence.push_back({"one of them", problem_text(walk_.stat(work_.front())), "shapes"});
    out.evidence.push_back({"bytes moved for it",
                            format_bytes(in_one_unit(facts, bytes)) + a_unit(facts),
                            "shape model"});
    out.assumptions.emplace_back(
        training ? "the optimizer keeps the 16-bit weights up to date, which costs a part of it"
                 : "the weights do not change");
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Launches work_;
};

}  // namespace

const Rule kCastRule = {{&kCast, 1}, [](Walk& walk, Advice& advice) { Casts(walk, advice).run(); }};

}  // namespace purlin::analyze
