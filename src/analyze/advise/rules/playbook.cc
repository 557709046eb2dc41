// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/playbook.h"

namespace purlin::analyze {

std::span<const Rule* const> playbook() {
  // What was recorded comes before what sizes suggest, and what goes as a whole before what would
  // be done to a part of it.
  static constexpr const Rule* kRules[] = {
      &kFlowRule,           &kAttentionRule,  &kMaskedRule,  &kUnneededRule,  &kTableRule,
      &kDropoutRule,        &kOptimizerRule,  &kByHandRule,  &kOrderRule,     &kOperandRule,
      &kDiscardedRule,      &kSolveRule,      &kByIndexRule, &kWindowsRule,   &kSmallMatricesRule,
      &kDecompositionsRule, &kDoneRule,       &kPatchesRule, &kRecomputeRule, &kBroadcastRule,
      &kReduceRule,         &kLongKeysRule,   &kLengthsRule, &kSpectraRule,   &kReuseRule,
      &kBatchRule,          &kCastRule,       &kAgainRule,   &kFreshRule,     &kEpilogueRule,
      &kPooledRule,         &kFusionRule,     &kLayoutRule,  &kAlignRule,     &kGatherRule,
      &kGridRule,           &kQuantizeRule,   &kDoubleRule,  &kShortenRule,   &kAllocationRule,
      &kRoundTripRule,      &kPersistentRule, &kCounterRule, &kCompileRule,   &kAtomicsRule,
      &kPassesRule,         &kOwnRule,        &kGrowingRule};
  return kRules;
}

void add_playbook(const Facts& facts, Advice& advice) {
  Walk walk(facts);
  for (const Rule* rule : playbook()) rule->add(walk, advice);
}

}  // namespace purlin::analyze
