// SPDX-License-Identifier: Apache-2.0
// Counter cards: sets of hardware counters that an NVIDIA chip can count during one launch, in one
// pass. Capture gives each sampled launch one card and turns through them, so that a kernel's
// figures come together from several launches and none is ever run twice.
//
// Data: names and pass counts are CUPTI's per chip, and a test asks CUPTI's host interface about
// every card of every chip (it needs no GPU). Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace purlin {

struct CounterCard {
  std::string_view topic;  // what `--counters` names: one or more cards each
  std::vector<std::string_view> metrics;
};

inline constexpr std::string_view kCounterTopics[] = {"memory", "tensor", "caches", "issue",
                                                      "flops"};
// Counted by code that CUPTI puts into the kernels, not by the hardware. It is alone on its card,
// and expensive for a program that loads many kernels.
inline constexpr std::string_view kInstrumentedTopic = "flops";
// Its value says whether a kernel uses the tensor cores at all.
inline constexpr std::string_view kTensorBusy =
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";

// Of a chip as CUPTI names it ("GH100"), a topic's cards one after the other; empty for a chip that
// is not known.
std::vector<CounterCard> counter_cards(std::string_view chip);

// What a tuner asks of a candidate, which it may launch again for each pass: a few passes. Empty
// for a chip that is not known.
std::vector<std::string_view> tuning_counters(std::string_view chip);

// What a replayed kernel is asked for: speed of light, roofline, occupancy, caches, stalls. Many
// passes.
std::vector<std::string_view> full_counters(std::string_view chip);

// "memory,tensor" -> topics; "all"; "" -> all but the instrumented one. False where one is not
// known.
bool parse_counter_topics(std::string_view text, std::vector<std::string_view>& topics);

}  // namespace purlin
