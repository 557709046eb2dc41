// SPDX-License-Identifier: Apache-2.0
// Remedies: what can be recommended, as data: under which pillar, at which level, at what effort
// and risk, and how it is done. Rules find the kernels, the evidence and the saving; nothing that
// is not in this table is ever recommended. Immutable.
#pragma once

#include "analyze/advise/advice.h"

#include <span>
#include <string_view>

namespace purlin::analyze {

struct Remedy {
  std::string_view id, title;
  Pillar pillar;
  Level level;
  std::string_view regime;
  std::string_view effort;  // "hours", "days", "weeks"
  std::string_view risk;    // "low": results stay the same; "medium"; "high": numerics change
  std::string_view portability, expertise;
  std::string_view how;    // separated by '|'
  std::string_view guard;  // what must be checked before it is kept
};

// Of the rules about the host, the roofline and the stalls; the playbook's are in its rules.
std::span<const Remedy> remedies();
// An intervention with everything that is known of its remedy.
Intervention from_remedy(const Remedy& remedy);
Intervention from_remedy(std::string_view id);
// The same kind of change, in the words of one of its cases.
struct RemedyCase {
  std::string_view title, effort, how, guard;
};
Intervention from_remedy(const Remedy& remedy, const RemedyCase& of);
Intervention from_remedy(std::string_view id, const RemedyCase& of);

}  // namespace purlin::analyze
