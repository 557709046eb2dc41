// SPDX-License-Identifier: Apache-2.0
#include "tune/space/build.h"

#include "tune/space/component_search.h"

#include <algorithm>
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
    PURLIN_TRY(check_parameters());
    const std::vector<Parameter>& parameters = space_.parameters_;
    if (space_.cartesian_ >= 0x1p63)
      return error(Code::kInvalid, "the space is too large: {:.3g} combinations",
                   space_.cartesian_);
    Space::Component component;
    component.parameters.resize(parameters.size());
    component.strides.assign(parameters.size(), 1);
    for (std::size_t i = parameters.size(); i-- > 0;) {
      component.parameters[i] = i;
      if (i + 1 < parameters.size())
        component.strides[i] = component.strides[i + 1] * parameters[i + 1].values.size();
    }
    for (const Config& config : configs) {
      std::uint64_t code = 0;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Value* value = config.find(parameters[i].name);
        const std::vector<Value>& values = parameters[i].values;
        const auto found =
            value == nullptr ? values.end() : std::find(values.begin(), values.end(), *value);
        if (found == values.end())
          return error(Code::kInvalid, "config {} has no known value of '{}'", config.text(),
                       parameters[i].name);
        code += static_cast<std::uint64_t>(found - values.begin()) * component.strides[i];
      }
      component.codes.push_back(code);
    }
    std::sort(component.codes.begin(), component.codes.end());
    component.codes.erase(std::unique(component.codes.begin(), component.codes.end()),
                          component.codes.end());
    component.size = component.codes.size();
    if (component.size == 0) return error(Code::kInvalid, "the space holds no config");
    space_.components_.push_back(std::move(component));
    PURLIN_TRY(lay_out());
    return std::move(space_);
  }

  Result<Space> build() {
    PURLIN_TRY(check_parameters());
    for (const SpecExpression& constraint : constraints_)
      space_.pruned_.push_back({constraint.expression.text(), constraint.where, 0});
    PURLIN_ASSIGN(const auto groups, tie());
    for (const auto& [members, ties] : groups) PURLIN_TRY(add(members, ties));
    PURLIN_TRY(lay_out());
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
                       constraints_[i].where, constraints_[i].expression.text(), name);
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
                 "device whatever the parameters",
                 constraint.where, constraint.expression.text());
  }

  Status add(const std::vector<std::size_t>& members, const std::vector<std::size_t>& ties) {
    Space::Component component;
    component.parameters = members;
    double product = 1;
    for (const std::size_t member : members)
      product *= static_cast<double>(space_.parameters_[member].values.size());
    if (product >= 0x1p63)
      return error(Code::kInvalid, "the space is too large: {:.3g} combinations are tied together",
                   product);
    if (ties.empty()) {  // one parameter, free
      component.complete = true;
      component.strides = {1};
      component.size = static_cast<std::size_t>(product);
      space_.components_.push_back(std::move(component));
      return Status::ok();
    }
    ComponentSearch search(space_.parameters_, members, constraints_, ties, constants_, limits_,
                           progress_);
    PURLIN_TRY(search.run());
    component.strides = search.strides();
    component.codes = std::move(search.codes());
    component.codes.shrink_to_fit();
    component.size = component.codes.size();
    // Of the whole product: valid ones of the components before, all of those not yet looked at.
    double others = space_.cartesian_ / product;
    for (const Space::Component& earlier : space_.components_) others *= valid_share(earlier);
    for (std::size_t i = 0; i < ties.size(); ++i)
      space_.pruned_[ties[i]].configs = search.removed()[i] * others;
    if (component.size == 0) return none_left(ties, search.removed(), product);
    space_.components_.push_back(std::move(component));
    return Status::ok();
  }

  double valid_share(const Space::Component& component) const {
    double share = static_cast<double>(component.size);
    for (const std::size_t member : component.parameters)
      share /= static_cast<double>(space_.parameters_[member].values.size());
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
                 constraint.where, constraint.expression.text(), 100 * removed[worst] / product,
                 product);
  }

  Status lay_out() {
    for (auto component = space_.components_.rbegin(); component != space_.components_.rend();
         ++component) {
      component->stride = space_.size_;
      if (__builtin_mul_overflow(space_.size_, component->size, &space_.size_) ||
          space_.size_ > std::size_t{1} << 62)
        return error(Code::kInvalid,
                     "the space is too large: more than 2^62 valid configs of {:.3g} in the "
                     "Cartesian product; give some parameters fewer values",
                     space_.cartesian_);
    }
    return Status::ok();
  }

  const std::vector<SpecExpression>& constraints_;
  Scope constants_;
  const SpaceLimits& limits_;
  const SpaceProgress& progress_;
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

Result<Space> build_space(const KernelSpec& spec, const ProblemShape& problem,
                          const DeviceInfo& device, const SpaceLimits& limits,
                          const SpaceProgress& progress) {
  return build_space(spec.parameters, spec.constraints, config_scope(spec, problem, {}, device),
                     limits, progress);
}

}  // namespace purlin::tune
