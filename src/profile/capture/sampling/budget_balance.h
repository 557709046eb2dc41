// SPDX-License-Identifier: Apache-2.0
// BudgetBalance: the nanoseconds that one tier may still spend. It grows by the tier's share of the
// budget while time passes, up to five seconds' worth. It falls by the overhead of its windows.
// It may be negative: windows then stay short or closed until the debt is paid.
//
// Owned by the OverheadController, one for each tier. Thread-safety: none. Pure arithmetic.
#pragma once

#include <algorithm>

namespace purlin::profile::capture {

class BudgetBalance {
 public:
  double ns() const { return ns_; }
  void set(double ns) { ns_ = ns; }
  void pay(double cost_ns) { ns_ -= cost_ns; }
  void give_back(double cost_ns) { ns_ += cost_ns; }
  // Income per ns of time. `window_ns`: the cost of one window, for which there is always room.
  // `recording`: income beyond the maximum may be returned for delayed records.
  void earn(double income, double elapsed_ns, double window_ns, bool recording) {
    const double most = std::max(income * kMaxNs, 2 * window_ns);
    const double earned = ns_ + income * elapsed_ns;
    const double kept = std::max(ns_, std::min(most, earned));
    if (recording) forgone_ns_ = std::min(income * kMaxForgoneNs, forgone_ns_ + earned - kept);
    ns_ = kept;
  }
  // Buffers of many threads may arrive at once, half a minute after their first launch. The income
  // of that time exceeded the maximum: as much of it as they cost is returned.
  void return_forgone(double income, double cost_ns, double age_ns) {
    const double delay = std::max(0.0, age_ns - kUsualDelayNs);
    const double returned = std::min({forgone_ns_, cost_ns, income * delay});
    forgone_ns_ -= returned;
    ns_ += returned;
  }

 private:
  static constexpr double kMaxNs = 5e9, kMaxForgoneNs = 60e9;  // of time
  static constexpr double kUsualDelayNs = 2e9;                 // of records

  double ns_ = 0;
  double forgone_ns_ = 0;  // earned while the tier was open, beyond the maximum
};

}  // namespace purlin::profile::capture
