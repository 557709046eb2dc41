// SPDX-License-Identifier: Apache-2.0
// Model-guided search.
//
// The search begins with random configs, whose number follows from the budget. Then an ensemble of
// boosted trees is fitted to the observed configs, and fitted again when their number has grown by
// a share. With a budget of few evaluations, a Gaussian process (smooth.h) proposes the configs
// instead: it learns from fewer results. The trees remain for spaces too large to predict whole,
// for counters, and where other runs are known. Each fit of the trees proposes a batch from four
// sources:
// - The favourite of a random member: exploration that follows the uncertainty of the ensemble.
// - The favourite of the members' mean.
// - The best neighbour of the fastest config. The landscape still has slopes where the trees see no
//   difference yet.
// - A uniform draw, so that no config is excluded for ever.
//
// Where the process searches, and its fastest config stays the fastest for some results, the
// configs that trade values of two parameters with it are next (exchange.h). At most every third
// config mends a failed step of the fastest one (mend.h).
//
// While the search stagnates, a share of the configs has forced values (excursion.h), because a
// model of one half of a space does not lead to the other half.
//
// The place of a config in the order of other runs is a feature, where there are runs. The trees
// then learn how far to follow them, even where they are wrong or the other way round. Trees
// without the feature take their place while those predict better.
//
// `counters` has a fifth source. Among the configs that the mean expects to be fast, it takes the
// config with the lowest bound from the predicted counters.
#include "tune/model/ensemble.h"
#include "tune/search/allowance.h"
#include "tune/search/exchange.h"
#include "tune/search/excursion.h"
#include "tune/search/ledger.h"
#include "tune/search/mend.h"
#include "tune/search/model_options.h"
#include "tune/search/screen.h"
#include "tune/search/smooth.h"
#include "tune/search/strategy.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_set>
#include <utility>

namespace purlin::tune {
namespace {

constexpr std::size_t kFirstModelled = 16;  // drawn where the budget does not say
constexpr std::size_t kIdleExchange = 7;    // results without a gain before an exchange
constexpr std::size_t kBetweenMends = 2;    // other configs asked for, at least
constexpr double kGain = 0.998;             // a better config takes at most this share of the best
// Failed steps are mended of configs that take at most this multiple of the best.
constexpr double kAsFast = 1.04;
// An exchange or a mend is likely by so many results before its turn.
constexpr std::size_t kForeseen = 2;
// Shares of the sources; what is left goes to single members' favourites.
constexpr double kModelRandom = 0.03, kNear = 0.15, kMean = 0.3;
// With counters: the share of the least bound, and among how many of those the mean expects most
// of.
constexpr double kMinBound = 0.4, kPromising = 0.05;
constexpr std::size_t kListed = 20'000;  // configs that are all predicted; of more, a sample is
constexpr std::size_t kSample = 2'000;
constexpr std::size_t kClimbers = 6, kClimb = 4;  // how many of a sample climb, and how far
constexpr std::size_t kModelBatch = 3;
// Hardware counters are read of randomly drawn configs, which teach most, until this many configs
// are profiled. They are also read of configs that come close to the best. After the first
// kMinProfiled configs, only a new best is profiled once the readings exceed this share of the
// measuring time. Each reading takes as long as an evaluation.
constexpr std::size_t kProfiled = 24;
constexpr std::size_t kMinProfiled = 10;  // a model of a counter takes 8
constexpr double kClose = 1.1, kCountShare = 0.25;
constexpr double kGrowth = 0.06;  // of the observations, from one fit to the next

class ModelSearch : public Strategy {
 public:
  ModelSearch(const StrategyRequest& request, FitRegressor fit, bool counters,
              const ModelOptions& options)
      : space_(request.space),
        options_(options),
        random_(request.seed),
        ledger_(space_, random_),
        screen_(space_, options.screened),
        exchange_(space_),
        mend_(space_),
        excursions_(space_, ledger_, random_, fit),
        ensemble_(space_, std::move(fit), features_of(request.priors)),
        counters_(counters),
        allowance_(request.evaluations, request.seconds),
        drawn_(request.drawn),
        patient_(request.patient) {
    if (space_.index_count() > kListed) return;
    for (std::size_t index = 0; index < space_.index_count(); ++index)
      if (space_.valid(index)) pool_.push_back(index);
    rows_ = ensemble_.encode(pool_);
    const bool few = request.evaluations > 0 && request.evaluations <= options_.few_evaluations;
    if (few && !counters_ && request.priors.empty()) smooth_.emplace(space_, ledger_, random_);
  }
  std::string_view name() const override { return counters_ ? "counters" : "model"; }

  std::optional<std::size_t> ask() override {
    const bool chance = too_short_for_model() || drawn_ < first();
    if (patient_ && smooth_ && !chance && outstanding_.size() >= most_outstanding_)
      return std::nullopt;
    const std::optional<std::size_t> index = choose();
    if (patient_ && index) outstanding_.insert(*index);
    return index;
  }

  void ask_ahead(std::size_t configs) override { most_outstanding_ = configs; }

  std::vector<std::size_t> likely(std::size_t count) override {
    std::vector<std::size_t> found;
    if (!smooth_ || !best_ || too_short_for_model() || drawn_ < first()) return found;
    const auto add = [&](std::size_t index) {
      if (found.size() < count && !ledger_.knows(index)) found.push_back(index);
    };
    if (since_mend_ + kForeseen > kBetweenMends)
      if (const auto index = smooth_->favourite(indices_of(ways_to_mend()))) add(*index);
    if (idle_ + kForeseen >= kIdleExchange)
      for (const std::size_t index : exchange_.of(*best_)) add(index);
    for (const std::size_t index : smooth_->likely(count - found.size()))
      if (std::find(found.begin(), found.end(), index) == found.end()) add(index);
    return found;
  }

  double count_within(std::size_t index) const override {
    if (!counters_) return 0;
    const bool expensive = counting_s_ > kCountShare * (measuring_s_ + counting_s_);
    if (profiled_ >= kMinProfiled && expensive) return 1;  // a new best, of which there are few
    if (profiled_ < kProfiled && (profiled_ < kMinProfiled || chance_.count(index) > 0))
      return std::numeric_limits<double>::infinity();
    return kClose;
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    ledger_.take(index);
    outstanding_.erase(index);
    static const std::map<std::string, double> kNone;
    const bool profiled = counters_ && outcome.evaluation != nullptr;
    ensemble_.add(index, outcome.time_ms, profiled ? outcome.evaluation->counters : kNone);
    screen_.add(index, outcome.time_ms);
    excursions_.add(index, outcome.time_ms);
    mend_.add(index, outcome.time_ms.has_value());
    if (outcome.time_ms) fast_.emplace(*outcome.time_ms, index);
    if (smooth_) smooth_->add(index, outcome.time_ms);
    ++idle_;
    allowance_.tell(outcome);
    if (profiled) {
      // Compiling runs in parallel and is not counted.
      measuring_s_ += outcome.evaluation->verify_s + outcome.evaluation->measure_s;
      counting_s_ += outcome.evaluation->counters_s;
      profiled_ += outcome.evaluation->counters_s > 0;
    }
    if (!outcome.time_ms || (best_ && *outcome.time_ms >= best_ms_)) return;
    if (!best_ || *outcome.time_ms < kGain * best_ms_) idle_ = 0;
    best_ = index;
    best_ms_ = *outcome.time_ms;
  }

 private:
  std::optional<std::size_t> choose() {
    if (too_short_for_model()) return draw_screened();
    if (drawn_ < first()) return draw();
    if (ensemble_.worked() < 2 || random_.uniform() < kModelRandom) return draw();
    if (smooth_ && best_ && ++since_mend_ > kBetweenMends)
      if (const auto index = mended()) return index;
    if (smooth_ && idle_ >= kIdleExchange)
      if (const auto index = exchanged()) return index;
    if (stagnates() && random_.uniform() < options_.forced)
      if (const auto index = excursions_.ask(*best_, pool_)) return index;
    if (smooth_)
      if (const auto index = smooth_->ask()) return index;
    if (queue_.empty()) propose();
    while (!queue_.empty()) {
      const std::size_t index = queue_.front();
      queue_.pop_front();
      if (ledger_.take(index)) return index;
    }
    return draw();
  }

  bool stagnates() const {
    const double share = options_.patience_share * static_cast<double>(ensemble_.observations());
    return static_cast<double>(idle_) > std::max(static_cast<double>(options_.patience_low), share);
  }

  // What failed next to one of the fastest configs: chance decides which of these is the best.
  std::vector<Mend::Way> ways_to_mend() const {
    std::vector<Mend::Way> ways;
    for (const auto& [time_ms, index] : fast_) {
      if (time_ms > kAsFast * best_ms_) break;
      for (const Mend::Way& way : mend_.of(index)) ways.push_back(way);
    }
    return ways;
  }

  static std::vector<std::size_t> indices_of(const std::vector<Mend::Way>& ways) {
    std::vector<std::size_t> indices;
    for (const Mend::Way& way : ways) indices.push_back(way.index);
    return indices;
  }

  std::optional<std::size_t> mended() {
    const std::vector<Mend::Way> ways = ways_to_mend();
    const std::optional<std::size_t> index = smooth_->ask_among(indices_of(ways));
    if (!index) return std::nullopt;
    mend_.take(*std::find_if(ways.begin(), ways.end(),
                             [&](const Mend::Way& way) { return way.index == *index; }));
    since_mend_ = 0;
    return index;
  }

  std::optional<std::size_t> exchanged() {
    for (const std::size_t index : exchange_.of(*best_))
      if (ledger_.take(index)) return index;
    return std::nullopt;
  }

  std::optional<std::size_t> draw_screened() {
    ++drawn_;
    const std::optional<std::size_t> index = screen_.draw(ledger_, random_);
    if (counters_ && index) chance_.insert(*index);
    return index;
  }

  std::optional<std::size_t> draw() {
    ++drawn_;
    const std::optional<std::size_t> index = ledger_.draw();
    if (counters_ && index) chance_.insert(*index);
    return index;
  }

  double allowed() const { return allowance_.evaluations(); }

  bool too_short_for_model() const { return allowed() > 0 && allowed() < options_.least_modelled; }

  // Configs to draw before the first fit.
  std::size_t first() const {
    if (allowed() <= 0) return kFirstModelled;
    return static_cast<std::size_t>(
        std::clamp(options_.first_share * allowed(), options_.first_low, options_.first_high));
  }

  static float sum(const Ensemble::Prediction& prediction) {
    return std::accumulate(prediction.begin(), prediction.end(), 0.0F);
  }

  void learn() {
    fitted_ = ensemble_.observations();
    ensemble_.fit(random_);
    if (space_.index_count() > kListed) sample_pool();
    expected_ = ensemble_.predict(rows_);
    least_bound_.clear();
    if (counters_) rank_by_floor();
  }

  // Of the configs that are expected to be fast, those first whose resources bind them least.
  void rank_by_floor() {
    const std::vector<float> floors = ensemble_.floors(rows_);
    if (floors.empty()) return;
    std::vector<std::pair<float, std::size_t>> order;
    for (std::size_t i = 0; i < pool_.size(); ++i) order.push_back({sum(expected_[i]), i});
    std::sort(order.begin(), order.end());
    order.resize(1 + static_cast<std::size_t>(kPromising * static_cast<double>(order.size() - 1)));
    for (auto& [value, at] : order) value = floors[at];
    std::sort(order.begin(), order.end());
    for (const auto& [floor, at] : order) least_bound_.push_back(pool_[at]);
  }

  // A call before a new result arrives goes on down the same list.
  void propose() {
    if (ensemble_.observations() != fitted_) learn();
    std::vector<std::size_t> near = neighbours_by_mean();
    const std::size_t batch =
        std::max(kModelBatch, static_cast<std::size_t>(kGrowth * static_cast<double>(fitted_)));
    std::vector<std::size_t> taken;
    const auto is_free = [&](std::size_t index) {
      return !ledger_.knows(index) && std::find(taken.begin(), taken.end(), index) == taken.end();
    };
    // The free config of the pool with the lowest value.
    const auto lowest = [&](const auto& value_of) -> std::optional<std::size_t> {
      std::optional<std::size_t> found;
      float low = 0;
      for (std::size_t i = 0; i < pool_.size(); ++i) {
        const float value = value_of(expected_[i]);
        if ((found && value >= low) || !is_free(pool_[i])) continue;
        found = pool_[i];
        low = value;
      }
      return found;
    };
    while (taken.size() < batch) {
      const double source = random_.uniform();
      std::optional<std::size_t> pick;
      while (source < kNear && !pick && !near.empty()) {
        if (is_free(near.back())) pick = near.back();
        near.pop_back();
      }
      if (!pick && source < kNear + kMean) pick = lowest(sum);
      if (!pick && source < kNear + kMean + kMinBound) {
        const auto least = std::find_if(least_bound_.begin(), least_bound_.end(), is_free);
        if (least != least_bound_.end()) pick = *least;
      }
      if (!pick) {
        const std::size_t member = random_.below(Ensemble::kMembers);
        pick = lowest([&](const Ensemble::Prediction& each) { return each[member]; });
      }
      if (!pick) break;
      taken.push_back(*pick);
    }
    queue_.assign(taken.begin(), taken.end());
  }

  // The fastest config's neighbours, the most promising last.
  std::vector<std::size_t> neighbours_by_mean() const {
    const std::vector<std::size_t> near = space_.neighbours(*best_);
    const std::vector<Ensemble::Prediction> expected = ensemble_.predict(ensemble_.encode(near));
    std::vector<std::pair<float, std::size_t>> order;
    for (std::size_t i = 0; i < expected.size(); ++i) order.push_back({-sum(expected[i]), near[i]});
    std::sort(order.begin(), order.end());
    std::vector<std::size_t> sorted;
    for (const auto& [value, index] : order) sorted.push_back(index);
    return sorted;
  }

  // A space too large to predict whole: a sample, the fastest config, and what climbing the
  // model from the best of them passes.
  void sample_pool() {
    pool_ = space_.sample(kSample, random_);
    pool_.push_back(*best_);
    rows_ = ensemble_.encode(pool_);
    const std::vector<Ensemble::Prediction> expected = ensemble_.predict(rows_);
    std::vector<std::pair<float, std::size_t>> climbers;
    for (std::size_t i = 0; i < pool_.size(); ++i) climbers.push_back({sum(expected[i]), pool_[i]});
    const std::size_t count = std::min(kClimbers, climbers.size());
    std::partial_sort(climbers.begin(), climbers.begin() + static_cast<std::ptrdiff_t>(count),
                      climbers.end());
    climbers.resize(count);
    climbers.push_back({0.0F, *best_});
    for (const auto& [value, start] : climbers) {
      std::size_t at = start;
      float height = std::numeric_limits<float>::max();
      for (std::size_t step = 0; step < kClimb; ++step) {
        const std::vector<std::size_t> near = space_.neighbours(at);
        const std::vector<Ensemble::Prediction> around = ensemble_.predict(ensemble_.encode(near));
        std::optional<std::size_t> next;
        for (std::size_t i = 0; i < near.size(); ++i) {
          pool_.push_back(near[i]);
          if (sum(around[i]) >= height) continue;
          height = sum(around[i]);
          next = near[i];
        }
        if (!next) break;
        at = *next;
      }
    }
    std::sort(pool_.begin(), pool_.end());
    pool_.erase(std::unique(pool_.begin(), pool_.end()), pool_.end());
    rows_ = ensemble_.encode(pool_);
  }

  const Space& space_;
  const ModelOptions options_;
  Random random_;
  Ledger ledger_;
  Screen screen_;
  Exchange exchange_;
  Mend mend_;
  std::set<std::pair<double, std::size_t>> fast_;  // what worked
  Excursions excursions_;
  std::optional<Smooth> smooth_;
  Ensemble ensemble_;
  const bool counters_;  // used where evaluations have them
  Allowance allowance_;
  std::size_t drawn_;  // at random, here or by the caller
  const bool patient_;
  std::size_t most_outstanding_ = 1;             // where it is patient
  std::unordered_set<std::size_t> outstanding_;  // asked for, where it is patient
  std::vector<std::size_t> pool_;                // configs to choose among
  std::vector<std::uint8_t> rows_;               // and their encodings
  std::vector<Ensemble::Prediction> expected_;
  std::vector<std::size_t> least_bound_;  // of those expected to be fast
  std::deque<std::size_t> queue_;
  std::unordered_set<std::size_t> chance_;   // what was drawn, where counters are read
  std::size_t profiled_ = 0;                 // evaluations whose hardware counters were read
  double counting_s_ = 0, measuring_s_ = 0;  // what that took, and all verifying and timing
  std::size_t fitted_ = 0;                   // observations at the last fit
  std::optional<std::size_t> best_;
  double best_ms_ = 0;
  std::size_t idle_ = 0;        // results since a better config
  std::size_t since_mend_ = 0;  // configs asked for
};

}  // namespace

std::unique_ptr<Strategy> make_model(const StrategyRequest& request) {
  return make_model_search(request, fit_boosted_trees(), {});
}

std::unique_ptr<Strategy> make_model_search(const StrategyRequest& request, FitRegressor fit,
                                            const ModelOptions& options) {
  return std::make_unique<ModelSearch>(request, std::move(fit), false, options);
}

std::unique_ptr<Strategy> make_counters(const StrategyRequest& request) {
  return std::make_unique<ModelSearch>(request, fit_boosted_trees(), true, ModelOptions{});
}

}  // namespace purlin::tune
