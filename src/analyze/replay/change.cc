// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/change.h"

namespace purlin::analyze {
namespace {

constexpr Interval3 kWhole = {1, 1, 1}, kNothingLeft = {0, 0, 0};

struct Limit {
  void operator()(edit::Remove& edit) const { edit.gone = kWhole; }
  void operator()(edit::Scale& edit) const {
    if (edit.factor.high <= 1) edit.factor = {edit.least, edit.least, edit.least};
  }
  void operator()(edit::Replace& edit) const { edit.duration_ns = kNothingLeft; }
  void operator()(edit::RemoveCalls& edit) const { edit.gone = kWhole; }
  void operator()(edit::LaunchAsGraph& edit) const {
    edit.node_gap_ns = edit.launch_ns = kNothingLeft;
  }
  void operator()(edit::Overlap& edit) const {
    edit.hidden = kWhole;
    edit.slowdown = kWhole;
  }
  void operator()(edit::ScaleHost& edit) const {
    if (edit.factor.high <= 1) edit.factor = kNothingLeft;
  }
};

}  // namespace

Change at_its_limit(Change change) {
  for (Edit& one : change.edits) std::visit(Limit{}, one);
  return change;
}

}  // namespace purlin::analyze
