// SPDX-License-Identifier: Apache-2.0
// Dropout in a program that does not train: most often the model was not put into its mode for
// inference.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "base/text.h"

#include <fmt/format.h>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kInference = {
    "Leave dropout out at inference", "hours",
    "PyTorch: model.eval(), and torch.inference_mode() around the loop|"
    "PyTorch: functional calls need training=self.training",
    "results change: they are no longer random; Monte Carlo dropout needs it"};

constexpr Interval3 kGoes = {0, 0.95, 1};  // it may be meant

void add_dropout(Walk& walk, Advice& advice) {
  if (walk.trains()) return;
  Launches work;
  for (const Launches& run : walk.runs())
    for (const std::uint32_t activity : run)
      if (walk.stat(activity).op.find("dropout") != std::string::npos ||
          walk.stat(activity).name.full.find("dropout") != std::string::npos)
        work.push_back(activity);
  if (work.empty()) return;
  const Facts& facts = walk.facts();
  Intervention out = from_remedy(kReduceRemedy, kInference);
  remove_launches(walk, work, kGoes, out);
  for (const std::uint32_t activity : work) name_kernel(walk.stat(activity), out);
  walk.take(work);
  out.evidence.push_back(
      {"dropout, and neither a backward pass nor an optimizer",
       fmt::format("{}{}, {}",
                   counted(in_one_unit(facts, static_cast<double>(work.size())), "launch"),
                   a_unit(facts),
                   of_total(in_one_unit(facts, walk.duration(work)), facts.unit.baseline_ns.mid)),
       "timeline"});
  out.assumptions.emplace_back("dropout is not meant: else the low estimate holds, which is 0");
  out.confidence = "B";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kDropoutRule = {{}, add_dropout};

}  // namespace purlin::analyze
