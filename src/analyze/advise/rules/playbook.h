// SPDX-License-Identifier: Apache-2.0
// The playbook: every rule about what the device runs, in the order in which they may take kernels.
// A rule has its remedies and a function that looks for them. Each rule is one file, in the folder
// of what it changes: algorithm/, batching/, fusion/, reuse/, unused/ (results that nothing uses),
// single/ (one kernel by itself), flow/ (what a recorded data flow shows). A rule that lacks
// evidence adds nothing. Its section for users: docs/guide/playbook.md#REMEDY.
#pragma once

#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/rules/walk.h"

#include <span>

namespace purlin::analyze {

struct Rule {
  std::span<const Remedy> remedies;
  void (*add)(Walk& walk, Advice& advice);
};
std::span<const Rule* const> playbook();
void add_playbook(const Facts& facts, Advice& advice);

extern const Remedy kReduceRemedy;  // of several rules
Intervention reuse_result();        // of the rules about repeated results

extern const Rule kAttentionRule, kOptimizerRule, kRecomputeRule, kReduceRule, kReuseRule,
    kBatchRule, kCastRule, kEpilogueRule, kFusionRule, kLayoutRule, kAlignRule, kGatherRule,
    kGridRule, kQuantizeRule, kDoubleRule, kShortenRule, kAllocationRule, kRoundTripRule,
    kPersistentRule, kCounterRule, kCompileRule, kTableRule, kAtomicsRule, kDropoutRule,
    kBroadcastRule, kSpectraRule, kPooledRule, kByHandRule, kAgainRule, kOrderRule, kSolveRule,
    kByIndexRule, kDiscardedRule, kPassesRule, kOwnRule, kOperandRule, kGrowingRule, kMaskedRule,
    kUnneededRule, kWindowsRule, kSmallMatricesRule, kDoneRule, kPatchesRule, kLongKeysRule,
    kDecompositionsRule, kFreshRule, kFlowRule, kLengthsRule;

}  // namespace purlin::analyze
