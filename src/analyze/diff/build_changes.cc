// SPDX-License-Identifier: Apache-2.0
#include "analyze/diff/build_changes.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr double kOccupancyStep = 0.05;  // of the warp slots; less is the estimate's own error
constexpr double kTensorStep = 0.05;
constexpr double kRoofStep = 0.05;  // of the roof

class BuildChanges {
 public:
  BuildChanges(const KernelStat& a, const KernelStat& b) : a_(a), b_(b) {}

  std::vector<std::string> list() {
    text("library", a_.name.family, b_.name.family);
    text("layout", a_.name.layout, b_.name.layout);
    text("operands", a_.name.dtype, b_.name.dtype);
    text("accumulator", a_.name.accumulator, b_.name.accumulator);
    text("tile", a_.name.tile, b_.name.tile);
    tensor_cores();
    number("registers", a_.registers, b_.registers);
    if (a_.registers > 0 && b_.registers > 0 && a_.local_bytes != b_.local_bytes)
      out_.push_back(
          fmt::format("local memory {} -> {} B a thread", a_.local_bytes, b_.local_bytes));
    share("occupancy", a_.roof.occupancy_achieved, b_.roof.occupancy_achieved, kOccupancyStep);
    if (a_.name.full != b_.name.full) {
      share("arithmetic", a_.roof.compute_share, b_.roof.compute_share, kRoofStep);
      share("bandwidth", a_.roof.memory_share, b_.roof.memory_share, kRoofStep);
    }
    return std::move(out_);
  }

 private:
  void text(const char* what, std::string_view a, std::string_view b) {
    if (!a.empty() && !b.empty() && a != b) out_.push_back(fmt::format("{} {} -> {}", what, a, b));
  }
  void number(const char* what, std::uint32_t a, std::uint32_t b) {
    if (a > 0 && b > 0 && a != b) out_.push_back(fmt::format("{} {} -> {}", what, a, b));
  }
  void share(const char* what, double a, double b, double step) {
    if (a > 0 && b > 0 && std::abs(a - b) >= step)
      out_.push_back(fmt::format("{} {:.0f}% -> {:.0f}%", what, 100 * a, 100 * b));
  }
  void tensor_cores() {
    const TensorCores a = a_.name.tensor, b = b_.name.tensor;
    if (a != b && a != TensorCores::kUnknown && b != TensorCores::kUnknown)
      out_.push_back(a == TensorCores::kYes ? "no tensor cores any more" : "now on tensor cores");
    else
      share("tensor cores busy", a_.roof.tensor_share, b_.roof.tensor_share, kTensorStep);
  }

  const KernelStat &a_, &b_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> build_changes(const KernelStat& a, const KernelStat& b) {
  return BuildChanges(a, b).list();
}

}  // namespace purlin::analyze
