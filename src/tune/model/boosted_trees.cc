// SPDX-License-Identifier: Apache-2.0
#include "tune/model/boosted_trees.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace purlin::tune {
namespace {

constexpr std::size_t kBins = 64;

}  // namespace

// Fits one tree after another to the residuals.
class BoostedTrees::Fitter {
 public:
  Fitter(std::span<const std::uint8_t> rows, std::size_t features, std::span<const float> targets,
         std::span<const std::uint32_t> chosen, const BoostingOptions& options, Random& random,
         BoostedTrees& model)
      : rows_(rows),
        features_(features),
        options_(options),
        random_(random),
        model_(model),
        order_(chosen.begin(), chosen.end()),
        columns_(features) {
    std::iota(columns_.begin(), columns_.end(), std::uint16_t{0});
    double sum = 0;
    for (const std::uint32_t row : order_) sum += targets[row];
    model_.base_ = static_cast<float>(sum / static_cast<double>(order_.size()));
    residual_.assign(targets.begin(), targets.end());
    for (float& value : residual_) value -= model_.base_;
  }

  void add_tree() {
    const std::size_t inner = (std::size_t{1} << options_.depth) - 1;
    const std::size_t first_node = model_.nodes_.size(), first_leaf = model_.leaves_.size();
    model_.nodes_.resize(first_node + inner);
    model_.leaves_.resize(first_leaf + inner + 1, 0.0F);
    const auto used = static_cast<std::size_t>(
        std::max(1.0, options_.columns * static_cast<double>(features_) + 0.5));
    used_ = std::min(used, features_);
    for (std::size_t i = 0; i < used_; ++i)
      std::swap(columns_[i], columns_[i + random_.below(features_ - i)]);
    nodes_ = model_.nodes_.data() + first_node;
    leaves_ = model_.leaves_.data() + first_leaf;
    grow(0, inner, 0, order_.size());
  }

 private:
  struct Split {
    double gain = 1e-9;
    Node node;
  };

  const std::uint8_t* row(std::size_t i) const { return rows_.data() + order_[i] * features_; }

  void grow(std::size_t node, std::size_t inner, std::size_t begin, std::size_t end) {
    if (node >= inner) return set_leaf(node - inner, begin, end);
    const Split split = end - begin >= 2 * options_.leaf ? best_split(begin, end) : Split{};
    nodes_[node] = split.node;
    std::size_t middle = end;
    if (split.node.at_most != 255) {
      const auto is_left = [&](std::uint32_t r) {
        return rows_[r * features_ + split.node.feature] <= split.node.at_most;
      };
      const auto first = order_.begin();
      middle = static_cast<std::size_t>(std::partition(first + static_cast<std::ptrdiff_t>(begin),
                                                       first + static_cast<std::ptrdiff_t>(end),
                                                       is_left) -
                                        first);
    }
    grow(2 * node + 1, inner, begin, middle);
    grow(2 * node + 2, inner, middle, end);
  }

  Split best_split(std::size_t begin, std::size_t end) {
    double total = 0;
    for (std::size_t i = begin; i < end; ++i) total += residual_[order_[i]];
    const double count = static_cast<double>(end - begin), l = options_.penalty;
    const double whole = total * total / (count + l);
    Split best;
    for (std::size_t c = 0; c < used_; ++c) {
      const std::uint16_t feature = columns_[c];
      sums_.fill(0);
      counts_.fill(0);
      std::size_t lowest = kBins, highest = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t bin = row(i)[feature];
        sums_[bin] += residual_[order_[i]];
        ++counts_[bin];
        lowest = std::min(lowest, bin);
        highest = std::max(highest, bin);
      }
      double left = 0;
      std::uint32_t left_count = 0;
      for (std::size_t bin = lowest; bin < highest; ++bin) {
        left += sums_[bin];
        left_count += counts_[bin];
        const std::uint32_t right_count = static_cast<std::uint32_t>(end - begin) - left_count;
        if (counts_[bin] == 0 || left_count < options_.leaf || right_count < options_.leaf)
          continue;
        const double right = total - left;
        const double gain = left * left / (left_count + l) + right * right / (right_count + l);
        if (gain - whole > best.gain)
          best = {gain - whole, {feature, static_cast<std::uint8_t>(bin)}};
      }
    }
    return best;
  }

  void set_leaf(std::size_t leaf, std::size_t begin, std::size_t end) {
    if (begin == end) return;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += residual_[order_[i]];
    const auto value = static_cast<float>(options_.rate * sum /
                                          (static_cast<double>(end - begin) + options_.penalty));
    leaves_[leaf] = value;
    for (std::size_t i = begin; i < end; ++i) residual_[order_[i]] -= value;
  }

  std::span<const std::uint8_t> rows_;
  std::size_t features_, used_ = 0;
  const BoostingOptions& options_;
  Random& random_;
  BoostedTrees& model_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint16_t> columns_;
  std::vector<float> residual_;
  std::array<double, kBins> sums_{};
  std::array<std::uint32_t, kBins> counts_{};
  Node* nodes_ = nullptr;
  float* leaves_ = nullptr;
};

BoostedTrees::BoostedTrees(std::span<const std::uint8_t> rows, std::size_t features,
                           std::span<const float> targets, std::span<const std::uint32_t> chosen,
                           const BoostingOptions& options, Random& random)
    : depth_(options.depth) {
  Fitter fitter(rows, features, targets, chosen, options, random, *this);
  for (int tree = 0; tree < options.trees; ++tree) fitter.add_tree();
}

float BoostedTrees::predict(const std::uint8_t* row) const {
  const std::size_t inner = (std::size_t{1} << depth_) - 1;
  float sum = base_;
  const Node* nodes = nodes_.data();
  const float* leaves = leaves_.data();
  for (std::size_t tree = 0; tree * (inner + 1) < leaves_.size(); ++tree) {
    std::size_t at = 0;
    for (int level = 0; level < depth_; ++level)
      at = 2 * at + 1 + (row[nodes[at].feature] > nodes[at].at_most);
    sum += leaves[at - inner];
    nodes += inner;
    leaves += inner + 1;
  }
  return sum;
}

}  // namespace purlin::tune
