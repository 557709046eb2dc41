// SPDX-License-Identifier: Apache-2.0
// Part: what is left of an op's time where only a part of its result is computed, and how a program
// asks for it. It depends on the op: a product shrinks with the part, a sort becomes a selection.
// Pure functions over values.
#pragma once

#include "analyze/advise/rules/flow/launches.h"
#include "analyze/advise/rules/remedies.h"

namespace purlin::analyze {

enum class PartOf {
  kNothing,  // the part takes the whole: a recurrence, or another result of several
  kRows,     // products, and what works element by element or row by row
  kSort,
  kScan,
  kSpectrum,
  kDecomposition,
  kInverse,
};
PartOf part_of(const FlowFact& fact);
const RemedyCase& case_of(PartOf part);
const char* sure_of(PartOf part);  // confidence
// Of one op's launches: the factor of their time that is left.
Interval3 left_of(const Walk& walk, const FlowFact& fact, const Launches& launches);

}  // namespace purlin::analyze
