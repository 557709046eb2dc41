// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/dtype_guess.h"

#include "analyze/roofline/work.h"
#include "model/problem/problem.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace purlin::analyze {
namespace {

constexpr std::size_t kNearLaunches = 8;  // launches of one stream
constexpr int kOuterOps = 16;             // looked at around a launch
constexpr double kAgree = 0.95;           // of the evidence
constexpr double kMostOfAll = 0.5;        // of the kernel time, without a timeline
constexpr double kLeastGuessed = 2;       // bytes: operands of 8 bits come with others of 16
using Votes = std::map<std::string_view, double>;

// Classes whose operands are a model's numbers. Copies convert, and reductions count, so that
// their neighbours tell nothing of them.
bool has_numbers(std::string_view op_class) {
  for (std::string_view known : {"gemm", "conv", "attention", "norm", "softmax", "elementwise"})
    if (op_class == known) return true;
  return false;
}

bool converts(std::string_view name) {
  for (std::string_view word : {"to_copy", "convert", "cast", "quant"})
    if (name.find(word) != std::string_view::npos) return true;
  return false;
}

// "" of integers: next to a model's numbers they are indices.
std::string_view floating(std::string_view dtype) {
  if (dtype == "tf32") return "f32";
  return dtype.find('f') != std::string_view::npos ? dtype : std::string_view();
}

DtypeGuess agreed(const Votes& votes, double least, std::string_view from) {
  double all = 0;
  for (const auto& [dtype, weight] : votes) all += weight;
  for (const auto& [dtype, weight] : votes)
    if (all >= least && weight >= kAgree * all && bytes_per_element(dtype) >= kLeastGuessed)
      return {std::string(dtype), from};
  return {};
}

class Guesser {
 public:
  Guesser(const Profile& profile, const std::map<std::string, KernelName>& names)
      : profile_(profile), votes_(profile.kernels.size()), rows_(profile.kernels.size()) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const KernelRow& row = profile.kernels[i];
      const KernelName& name = names.at(row.name);
      const std::string_view own = name.dtype;
      rows_[i].known = floating(row.dtype.empty() ? own : std::string_view(row.dtype));
      rows_[i].asks = row.dtype.empty() && own.empty() && has_numbers(op_class_of_row(row, name)) &&
                      !converts(row.name);
      any_ = any_ || rows_[i].asks;
    }
  }

  std::vector<DtypeGuess> guess() {
    std::vector<DtypeGuess> out(rows_.size());
    if (!any_) return out;
    if (!profile_.timeline.empty()) count_launches();
    const bool no_timeline = profile_.timeline.empty();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].asks) continue;
      out[i] = no_timeline ? of_profile(profile_.kernels[i].device)
                           : agreed(votes_[i].ops, rows_[i].launches / 2, "op");
      // Ops that disagree have spoken, too.
      if (out[i].dtype.empty() && votes_[i].ops.empty())
        out[i] = agreed(votes_[i].near, std::max(2.0, rows_[i].launches), "neighbours");
    }
    return out;
  }

 private:
  struct Row {
    std::string_view known;
    bool asks = false;
    double launches = 0;
  };
  struct Evidence {
    Votes ops, near;
  };
  struct Stream {
    std::size_t at = 0;  // launches so far
    std::string_view last;
    std::size_t last_at = 0;
    std::vector<std::pair<std::size_t, std::size_t>> waiting;  // row, place
  };

  void count_launches() {
    std::map<std::tuple<std::uint32_t, std::uint16_t, std::uint32_t>, Stream> streams;
    for (const Activity& activity : profile_.timeline.activities) {
      if (activity.kind != ActivityKind::kKernel) continue;
      Stream& stream = streams[{activity.process, activity.device, activity.stream}];
      ++stream.at;
      if (!rows_[activity.row].known.empty()) {
        end_wait(stream, rows_[activity.row].known);
      } else if (rows_[activity.row].asks) {
        ask(stream, activity);
      }
    }
  }

  void end_wait(Stream& stream, std::string_view dtype) {
    for (const auto& [row, place] : stream.waiting)
      if (stream.at - place <= kNearLaunches) votes_[row].near[dtype] += 1;
    stream.waiting.clear();
    stream.last = dtype;
    stream.last_at = stream.at;
  }

  void ask(Stream& stream, const Activity& activity) {
    ++rows_[activity.row].launches;
    if (const std::string_view dtype = of_ops(activity); !dtype.empty())
      votes_[activity.row].ops[dtype] += 1;
    if (!stream.last.empty() && stream.at - stream.last_at <= kNearLaunches)
      votes_[activity.row].near[stream.last] += 1;
    stream.waiting.emplace_back(activity.row, stream.at);
  }

  std::string_view of_ops(const Activity& activity) const {
    const Timeline& timeline = profile_.timeline;
    if (activity.call == kNone) return "";
    std::uint32_t op = timeline.calls[activity.call].op;
    for (int i = 0; op != kNone && i < kOuterOps; ++i, op = timeline.ops[op].parent)
      if (const std::string_view dtype = floating(timeline.names[timeline.ops[op].dtype]);
          !dtype.empty())
        return dtype;
    return "";
  }

  DtypeGuess of_profile(int device) const {
    Votes votes;
    double all = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const KernelRow& row = profile_.kernels[i];
      if (row.device != device) continue;
      all += row.duration.total_ns();
      if (!rows_[i].known.empty()) votes[rows_[i].known] += row.duration.total_ns();
    }
    return agreed(votes, std::max(1.0, kMostOfAll * all), "profile");
  }

  const Profile& profile_;
  std::vector<Evidence> votes_;
  std::vector<Row> rows_;
  bool any_ = false;
};

}  // namespace

std::vector<DtypeGuess> guess_dtypes(const Profile& profile,
                                     const std::map<std::string, KernelName>& names) {
  return Guesser(profile, names).guess();
}

}  // namespace purlin::analyze
