// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/read_whole.h"

#include "analyze/advise/rules/op_facts.h"

namespace purlin::analyze {
namespace {

bool reads(const Touch& touch, double elements) {
  if (touch.kind == TouchKind::kProduct)
    return touch.batch * touch.m * touch.depth == elements || touch.weights == elements;
  if (touch.multiplies()) return touch.read == touch.in_size * (elements + touch.weights);
  if (touch.kind == TouchKind::kPointwise) return touch.n == elements && touch.inputs >= 1;
  return touch.light() && touch.n == elements;
}

}  // namespace

bool read_whole_after(const Walk& walk, const Launches& run, std::size_t at, double elements) {
  const Timeline& timeline = walk.facts().profile->timeline;
  const int step = walk.step_of(walk.at(run[at]));
  // A wait of the host cuts a run; the step goes on in those behind it.
  for (const Launches* next = &run; next != walk.runs().data() + walk.runs().size() &&
                                    walk.step_of(walk.at(next->front())) == step;
       ++next) {
    for (std::size_t i = next == &run ? at + 1 : 0; i < next->size(); ++i) {
      const Touch& touch = walk.touch((*next)[i]);
      if (in_backward(timeline, walk.at((*next)[i]))) return false;
      if (reads(touch, elements)) return true;
      if (touch.out == elements) return false;
    }
  }
  return false;
}

}  // namespace purlin::analyze
