// SPDX-License-Identifier: Apache-2.0
#include "tune/space/build.h"

#include "tune/space/diagram_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace purlin::tune {
namespace {

constexpr std::size_t kMaxParameters = 1000;
constexpr std::size_t kMaxValues = 65'536;

// Sets of parameters that constraints tie together.
class Ties {
 public:
  explicit Ties(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t item) {
    while (parent_[item] != item) item = parent_[item] = parent_[parent_[item]];
    return item;
  }
  // The smaller index becomes the root, so that a set is named by its first parameter.
  void join(std::size_t a, std::size_t b) {
    a = root(a), b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

class SpaceBuilder {
 public:
  SpaceBuilder(const std::vector<Parameter>& parameters,
               const std::vector<SpecExpression>& constraints, const Scope& constants,
               const SpaceLimits& limits, const SpaceProgress& progress)
      : constraints_(constraints), constants_(constants), limits_(limits), progress_(progress) {
    space_.parameters_ = parameters;
  }

  Result<Space> list(const std::vector<Config>& configs) {
    const std::vector<Parameter>& parameters = space_.parameters_;
    std::vector<std::uint16_t> rows;
    for (const Config& config : configs) {
      for (const Parameter& parameter : parameters) {
        const Value* value = config.find(parameter.name);
        const std::vector<Value>& values = parameter.values;
        const auto found =
            value == nullptr ? values.end() : std::find(values.begin(), values.end(), *value);
        if (found == values.end())
          return error(Code::kInvalid, "config {} has no known value of '{}'", config.text(),
                       parameter.name);
        rows.push_back(static_cast<std::uint16_t>(found - values.begin()));
      }
    }
    return list(std::move(rows));
  }

  Result<Space> list(std::vector<std::uint16_t> rows) {
    PURLIN_TRY(check_parameters());
    const std::size_t width = space_.parameters_.size();
    if (rows.empty()) return error(Code::kInvalid, "the space holds no config");
    const auto row = [&](std::size_t i) { return std::span(rows).subspan(i * width, width); };
    std::vector<std::uint32_t> order(rows.size() / width);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::ranges::lexicographical_compare(row(a), row(b));
    });
    std::vector<std::uint16_t> sorted;
    sorted.reserve(rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && std::ranges::equal(row(order[i]), row(order[i - 1]))) continue;
      sorted.insert(sorted.end(), row(order[i]).begin(), row(order[i]).end());
    }
    rows = {};
    space_.components_.push_back({Diagram::of_rows(sorted, width)});
    PURLIN_TRY(lay_out());
    space_.size_ = space_.index_count_;
    return std::move(space_);
  }

  Result<Space> build() {
    PURLIN_TRY(check_parameters());
    for (const SpecExpression& constraint : constraints_)
      space_.pruned_.push_back({constraint.text(), constraint.where, 0});
    PURLIN_ASSIGN(const auto groups, tie());
    for (const auto& [members, ties] : groups) PURLIN_TRY(add(members, ties));
    PURLIN_TRY(lay_out());
    PURLIN_TRY(measure());
    return std::move(space_);
  }

 private:
  using Group = std::pair<std::vector<std::size_t>, std::vector<std::size_t>>;

  Status check_parameters() {
    if (space_.parameters_.size() > kMaxParameters)
      return error(Code::kInvalid, "{} parameters are more than {}", space_.parameters_.size(),
                   kMaxParameters);
    for (const Parameter& parameter : space_.parameters_) {
      if (parameter.values.empty())
        return error(Code::kInvalid, "parameter '{}' has no values", parameter.name);
      if (parameter.values.size() > kMaxValues)
        return error(Code::kInvalid,
                     "parameter '{}' has {} values, more than {}; use a coarser step",
                     parameter.name, parameter.values.size(), kMaxValues);
      space_.cartesian_ *= static_cast<double>(parameter.values.size());
    }
    return Status::ok();
  }

  // Components in the order of their first parameter: its members, and the constraints over them.
  Result<std::vector<Group>> tie() {
    const std::vector<Parameter>& parameters = space_.parameters_;
    Ties ties(parameters.size());
    std::vector<std::vector<std::size_t>> reads(constraints_.size());
    for (std::size_t i = 0; i < constraints_.size(); ++i) {
      for (const std::string& name : constraints_[i].expression.names()) {
        const auto found = std::find_if(parameters.begin(), parameters.end(),
                                        [&](const Parameter& p) { return p.name == name; });
        if (found == parameters.end()) {
          if (constants_.find(name) != nullptr) continue;
          return error(Code::kInvalid, "{}: constraint '{}' uses the unknown name '{}'",
                       constraints_[i].where, constraints_[i].text(), name);
        }
        reads[i].push_back(static_cast<std::size_t>(found - parameters.begin()));
      }
      PURLIN_TRY(reads[i].empty() ? check_constant(i) : Status::ok());
      // A parameter with one value is as good as a constant and ties nothing together.
      std::vector<std::size_t> varying;
      for (const std::size_t read : reads[i])
        if (parameters[read].values.size() > 1) varying.push_back(read);
      for (const std::size_t read : varying) ties.join(varying.front(), read);
    }
    std::vector<Group> groups;
    std::vector<std::size_t> group_of(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (ties.root(i) == i) {
        group_of[i] = groups.size();
        groups.emplace_back();
      }
      groups[group_of[ties.root(i)]].first.push_back(i);
    }
    for (std::size_t i = 0; i < constraints_.size(); ++i) {
      if (reads[i].empty()) continue;
      std::size_t owner = reads[i].front();
      for (const std::size_t read : reads[i])
        if (parameters[read].values.size() > 1) owner = read;
      groups[group_of[ties.root(owner)]].second.push_back(i);
    }
    for (const std::size_t single : singles())
      constants_.set(parameters[single].name, parameters[single].values.front());
    return groups;
  }

  std::vector<std::size_t> singles() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < space_.parameters_.size(); ++i)
      if (space_.parameters_[i].values.size() == 1) found.push_back(i);
    return found;
  }

  // A constraint over no parameter at all decides for the whole space.
  Status check_constant(std::size_t i) {
    const SpecExpression& constraint = constraints_[i];
    const Result<bool> holds = constraint.expression.evaluate_bool(constants_.lookup());
    if (!holds.is_ok()) return holds.status().with_context(constraint.where);
    if (*holds) return Status::ok();
    return error(Code::kInvalid,
                 "{}: no config satisfies the constraints: '{}' is false for this problem and "
                 "device for all parameter values",
                 constraint.where, constraint.text());
  }

  Status add(const std::vector<std::size_t>& members, std::vector<std::size_t> ties) {
    std::vector<std::size_t> filters;
    while (true) {
      DiagramBuilder builder(space_.parameters_, members, constraints_, ties, constants_, limits_,
                             progress_);
      PURLIN_ASSIGN(std::optional<Diagram> diagram, builder.run());
      if (diagram) {
        // Of the whole product: valid ones of the components before, all of those not looked at.
        double product = 1;
        for (const std::size_t member : members) product *= count_of(member);
        double others = space_.cartesian_ / product;
        for (const Space::Component& earlier : space_.components_) others *= valid_share(earlier);
        for (std::size_t i = 0; i < ties.size(); ++i)
          space_.pruned_[ties[i]].configs = builder.removed()[i] * others;
        if (diagram->size() == 0) return none_left(ties, builder.removed(), product);
        space_.components_.push_back({*std::move(diagram)});
        return Status::ok();
      }
      const std::optional<std::size_t> wide = builder.too_wide();
      if (!wide) return too_large();
      filters_.push_back(ties[*wide]);
      ties.erase(ties.begin() + static_cast<std::ptrdiff_t>(*wide));
    }
  }

  double count_of(std::size_t parameter) const {
    return static_cast<double>(space_.parameters_[parameter].values.size());
  }

  double valid_share(const Space::Component& component) const {
    double share = static_cast<double>(component.diagram.size());
    for (const Diagram::Level& level : component.diagram.levels())
      share /= count_of(level.parameter);
    return share;
  }

  Status none_left(const std::vector<std::size_t>& ties, const std::vector<double>& removed,
                   double product) const {
    const std::size_t worst = static_cast<std::size_t>(
        std::max_element(removed.begin(), removed.end()) - removed.begin());
    const SpecExpression& constraint = constraints_[ties[worst]];
    return error(Code::kInvalid,
                 "{}: no config satisfies the constraints; '{}' rejects {:.4g} % of the {:.4g} "
                 "combinations of its parameters and those tied to them, more than any other: "
                 "relax it or give its parameters other values",
                 constraint.where, constraint.text(), 100 * removed[worst] / product, product);
  }

  Status lay_out() {
    for (auto component = space_.components_.rbegin(); component != space_.components_.rend();
         ++component) {
      component->stride = space_.index_count_;
      if (__builtin_mul_overflow(space_.index_count_, component->diagram.size(),
                                 &space_.index_count_) ||
          space_.index_count_ > std::size_t{1} << 62)
        return too_large();
    }
    return Status::ok();
  }

  Status too_large() const {
    return error(Code::kInvalid,
                 "the space is too large: more than 2^62 valid configs of {:.3g} in the Cartesian "
                 "product; give some parameters fewer values",
                 space_.cartesian_);
  }

  // The size: counted already, or estimated from a uniform sample where constraints were left out.
  Status measure() {
    space_.size_ = space_.index_count_;
    if (filters_.empty()) return Status::ok();
    std::sort(filters_.begin(), filters_.end());
    for (const std::size_t filter : filters_) space_.filters_.push_back(constraints_[filter]);
    space_.constants_ = constants_;
    constexpr std::size_t kDraws = 1 << 16, kMaxDraws = 1 << 21, kEnough = 1000;
    Random random(1);
    std::vector<double> rejected(filters_.size());
    Assignment values(space_.parameters_.size());
    std::size_t drawn = 0, valid = 0;
    while (drawn < kDraws || (valid < kEnough && drawn < kMaxDraws)) {
      if (drawn % kDraws == 0 && progress_ && !progress_(1))
        return error(Code::kCancelled, "stopped while estimating the size of the space");
      space_.assignment(random.below(space_.index_count_), values);
      ++drawn;
      if (const std::optional<std::size_t> by = space_.rejecting_filter(values)) {
        rejected[*by] += 1;
      } else {
        ++valid;
      }
    }
    const double all = static_cast<double>(space_.index_count_);
    const double draws = static_cast<double>(drawn);
    for (std::size_t i = 0; i < filters_.size(); ++i)
      space_.pruned_[filters_[i]].configs = rejected[i] / draws * all;
    if (valid == 0) {
      const auto worst = std::max_element(rejected.begin(), rejected.end()) - rejected.begin();
      const SpecExpression& constraint = constraints_[filters_[static_cast<std::size_t>(worst)]];
      return error(Code::kInvalid,
                   "{}: the space is too large to count, and of {} configs drawn from it none is "
                   "valid; '{}' rejects the most: relax it, or split it into constraints over "
                   "fewer parameters",
                   constraint.where, drawn, constraint.text());
    }
    const double share = static_cast<double>(valid) / draws;
    space_.size_ = std::max<std::size_t>(1, static_cast<std::size_t>(share * all));
    space_.size_error_ = std::sqrt((1 - share) / (share * draws));
    return Status::ok();
  }

  const std::vector<SpecExpression>& constraints_;
  Scope constants_;
  const SpaceLimits& limits_;
  const SpaceProgress& progress_;
  std::vector<std::size_t> filters_;  // constraints that made a diagram too large
  Space space_;
};

Result<Space> build_space(const std::vector<Parameter>& parameters,
                          const std::vector<SpecExpression>& constraints, const Scope& constants,
                          const SpaceLimits& limits, const SpaceProgress& progress) {
  return SpaceBuilder(parameters, constraints, constants, limits, progress).build();
}

Result<Space> list_space(const std::vector<Parameter>& parameters,
                         const std::vector<Config>& configs) {
  const std::vector<SpecExpression> no_constraints;
  const Scope no_constants;
  const SpaceLimits limits;
  const SpaceProgress no_progress;
  return SpaceBuilder(parameters, no_constraints, no_constants, limits, no_progress).list(configs);
}

Result<Space> list_space(const std::vector<Parameter>& parameters,
                         std::vector<std::uint16_t> rows) {
  const std::vector<SpecExpression> no_constraints;
  const Scope no_constants;
  const SpaceLimits limits;
  const SpaceProgress no_progress;
  return SpaceBuilder(parameters, no_constraints, no_constants, limits, no_progress)
      .list(std::move(rows));
}

Result<Space> build_space(const KernelSpec& spec, const ProblemShape& problem,
                          const DeviceInfo& device, const SpaceLimits& limits,
                          const SpaceProgress& progress) {
  std::vector<SpecExpression> constraints = spec.constraints;
  // What could not be launched need not be tried.
  for (SpecExpression& limit : launch_limits(spec.launch, device))
    constraints.push_back(std::move(limit));
  return build_space(spec.parameters, constraints, config_scope(spec, problem, {}, device), limits,
                     progress);
}

}  // namespace purlin::tune
