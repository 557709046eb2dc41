// SPDX-License-Identifier: Apache-2.0
// The algorithms that cuBLASLt accepts for a product. The library lists tiles, stages and the
// ranges of its other options for each algorithm. It lists neither the valid combinations nor
// cluster and inner shapes: cublasLtMatmulAlgoCheck finds those.
#include "base/text.h"
#include "base/time.h"
#include "gpu/cuda/cublaslt/cublaslt.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

namespace purlin::gpu {
namespace {

constexpr int kMaxIds = 512;
constexpr int kMaxProposals = 64;
constexpr int kMaxCustom = 255;  // of one algorithm
constexpr int kMaxCluster = 60;  // ids; the header of 13.1 knows 51
constexpr int kMaxInner = 12;    // the header knows 4
// No such cluster or inner shape exists: an algorithm that accepts it ignores the option.
constexpr std::int32_t kNoSuchShape = 0x7F00;
constexpr int kSplits[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32};
constexpr int kReductions[] = {CUBLASLT_REDUCTION_SCHEME_INPLACE,
                               CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                               CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE};
// An algorithm of so many pairs of tile and stages is tried on a part of them first (on an H200 one
// has 3,135 pairs, of which it accepts none).
constexpr std::size_t kManyPairs = 1000, kTriedFirst = 16;

// In the order of library_parameters().
struct Row {
  std::int32_t id = 0, tile = 0, stages = 0, split = 1, reduction = 0, swizzle = 0, custom = 0,
               inner = 0, cluster = 0;
  auto operator<=>(const Row&) const = default;  // NOLINT(modernize-use-nullptr)
};

class Enumerator {
 public:
  Enumerator(const LtProduct& product, const LtSpaceLimits& limits)
      : product_(product), lt_(product.functions()), limits_(limits) {}

  Result<LibrarySpace> run() {
    const std::int64_t start_ns = system_clock().monotonic_ns();
    space_.version = lt_.version();
    space_.parameters = library_parameters();
    add_proposals();
    std::vector<int> ids(kMaxIds);
    int count = 0;
    const LtTypes& types = product_.types();
    PURLIN_TRY(lt_failure(
        "listing cuBLASLt's algorithms",
        lt_.cublasLtMatmulAlgoGetIds(product_.handle(), types.compute, types.scale, types.a,
                                     types.b, types.d, types.d, kMaxIds, ids.data(), &count)));
    ids.resize(static_cast<std::size_t>(std::clamp(count, 0, kMaxIds)));
    // The newest algorithms have the highest ids, and are the ones for the newest devices: they
    // come first, so that what runs out of time is the least likely to matter.
    std::sort(ids.rbegin(), ids.rend());
    deadline_ns_ = start_ns + static_cast<std::int64_t>(limits_.seconds * 1e9);
    for (const int id : ids) add_algorithm(id);
    if (rows_.empty())
      return error(Code::kUnavailable, "cuBLASLt has no algorithm for {}",
                   product_.operation().text());
    for (const Row& row : rows_) append(row);
    for (const Row& row : proposals_)
      space_.proposals.push_back(
          static_cast<std::size_t>(std::distance(rows_.begin(), rows_.find(row))));
    space_.seconds = static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
    return std::move(space_);
  }

 private:
  bool over() {
    if (rows_.size() < limits_.configs && system_clock().monotonic_ns() < deadline_ns_)
      return false;
    space_.complete = false;
    return true;
  }

  void append(const Row& row) {
    for (const std::int32_t value : {row.id, row.tile, row.stages, row.split, row.reduction,
                                     row.swizzle, row.custom, row.inner, row.cluster})
      space_.values.push_back(value);
  }

  static Config config_of(const Row& row) {
    Config config;
    const std::int32_t values[] = {row.id,      row.tile,   row.stages, row.split,  row.reduction,
                                   row.swizzle, row.custom, row.inner,  row.cluster};
    const std::vector<std::string>& names = library_parameters();
    for (std::size_t i = 0; i < names.size(); ++i) config.set(names[i], std::int64_t{values[i]});
    return config;
  }

  // All proposals of the library are in the space, its first choice first.
  void add_proposals() {
    for (const cublasLtMatmulHeuristicResult_t& proposal : product_.proposals(kMaxProposals)) {
      const Result<Config> config = read_lt_algorithm(lt_, proposal.algo);
      if (!config.is_ok()) continue;
      const Result<LtAlgorithm> rebuilt = product_.build(*config);
      const bool same =
          rebuilt.is_ok() && std::memcmp(&rebuilt->algo, &proposal.algo, sizeof proposal.algo) == 0;
      if (!same) ++space_.not_rebuilt;
      if (!rebuilt.is_ok()) continue;
      std::vector<std::int32_t> v;
      for (const auto& [name, value] : config->items())
        v.push_back(static_cast<std::int32_t>(std::get<std::int64_t>(value)));
      const Row row{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]};
      if (std::find(proposals_.begin(), proposals_.end(), row) != proposals_.end()) continue;
      proposals_.push_back(row);
      rows_.insert(row);
    }
  }

  template <class T>
  static T capability(const LtFunctions& lt, const cublasLtMatmulAlgo_t& algo,
                      cublasLtMatmulAlgoCapAttributes_t what) {
    T value{};
    std::size_t written = 0;
    lt.cublasLtMatmulAlgoCapGetAttribute(&algo, what, &value, sizeof value, &written);
    return value;
  }

  // {0}, "undefined", where the algorithm leaves no choice.
  std::vector<std::int32_t> listed(const cublasLtMatmulAlgo_t& algo,
                                   cublasLtMatmulAlgoCapAttributes_t what) const {
    std::size_t bytes = 0;
    lt_.cublasLtMatmulAlgoCapGetAttribute(&algo, what, nullptr, 0, &bytes);
    std::vector<std::int32_t> all(std::min<std::size_t>(bytes / sizeof(std::int32_t), 4096));
    if (!all.empty())
      lt_.cublasLtMatmulAlgoCapGetAttribute(&algo, what, all.data(),
                                            all.size() * sizeof(std::int32_t), &bytes);
    if (all.empty()) all.push_back(0);
    return all;
  }

  bool accepts(const Row& row) {
    if (!base_) return false;
    cublasLtMatmulAlgo_t algo = *base_;
    const auto set = [&](cublasLtMatmulAlgoConfigAttributes_t attribute, auto value) {
      return lt_.cublasLtMatmulAlgoConfigSetAttribute(&algo, attribute, &value, sizeof value) ==
             CUBLAS_STATUS_SUCCESS;
    };
    if (!set(CUBLASLT_ALGO_CONFIG_TILE_ID, row.tile) ||
        !set(CUBLASLT_ALGO_CONFIG_STAGES_ID, row.stages) ||
        !set(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, row.split) ||
        !set(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, row.reduction) ||
        !set(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, row.swizzle) ||
        !set(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, row.custom) ||
        !set(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, static_cast<std::uint16_t>(row.inner)) ||
        !set(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, static_cast<std::uint16_t>(row.cluster)))
      return false;
    ++space_.checked;
    const LtDescriptors& of = product_.descriptors();
    cublasLtMatmulHeuristicResult_t result{};
    return lt_.cublasLtMatmulAlgoCheck(product_.handle(), of.operation, of.a, of.b, of.c, of.d,
                                       &algo, &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= static_cast<std::size_t>(product_.operation().workspace_bytes);
  }

  // For each pair of tile and stages, one option after another: what is accepted with the ones
  // before it is combined with the next.
  void add_algorithm(int id) {
    cublasLtMatmulAlgo_t base{};
    const LtTypes& types = product_.types();
    if (lt_.cublasLtMatmulAlgoInit(product_.handle(), types.compute, types.scale, types.a, types.b,
                                   types.d, types.d, id, &base) != CUBLAS_STATUS_SUCCESS)
      return;
    base_ = &base;
    const int custom = std::clamp(
        capability<std::int32_t>(lt_, base, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX), 0, kMaxCustom);
    const bool split = capability<std::int32_t>(lt_, base, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT) != 0;
    const auto reductions =
        capability<std::uint32_t>(lt_, base, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK);
    const bool swizzle =
        capability<std::uint32_t>(lt_, base, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT) != 0;
    std::vector<Row> pairs;
    for (const std::int32_t tile : listed(base, CUBLASLT_ALGO_CAP_TILE_IDS))
      for (const std::int32_t stages : listed(base, CUBLASLT_ALGO_CAP_STAGES_IDS)) {
        Row& row = pairs.emplace_back();
        row.id = id, row.tile = tile, row.stages = stages;
      }
    const std::size_t before = rows_.size();
    const auto explore = [&](const Row& pair) {
      std::vector<Row> found = {pair};
      widen(found, &Row::cluster, kMaxCluster);
      widen(found, &Row::inner, kMaxInner);
      widen(found, &Row::custom, custom);
      if (swizzle) widen(found, &Row::swizzle, 1);
      if (split) add_splits(found, reductions);
      for (const Row& one : found)
        if (one.split > 1 || accepts(one)) rows_.insert(one);
    };
    const std::size_t step = pairs.size() > kManyPairs ? kTriedFirst : 1;
    for (std::size_t i = 0; i < pairs.size() && !over(); i += step) explore(pairs[i]);
    if (step > 1 && rows_.size() > before)
      for (std::size_t i = 0; i < pairs.size() && !over(); ++i)
        if (i % step != 0) explore(pairs[i]);
    base_ = nullptr;
  }

  // Every row again with each value of the option that is accepted.
  void widen(std::vector<Row>& rows, std::int32_t Row::*option, int most) {
    const std::size_t count = rows.size();
    Row nonsense = rows.front();
    nonsense.*option = kNoSuchShape;
    if (accepts(nonsense)) return;
    for (std::size_t i = 0; i < count && !over(); ++i)
      for (std::int32_t value = 1; value <= most; ++value) {
        Row row = rows[i];
        row.*option = value;
        if (accepts(row)) rows.push_back(row);
      }
  }

  void add_splits(std::vector<Row>& rows, std::uint32_t reductions) {
    const std::size_t count = rows.size();
    for (std::size_t i = 0; i < count && !over(); ++i)
      for (const int split : kSplits)
        for (const int reduction : kReductions) {
          if (reduction != 0 && (reductions & static_cast<unsigned>(reduction)) == 0) continue;
          Row row = rows[i];
          row.split = split, row.reduction = reduction;
          if (accepts(row)) rows.push_back(row);
        }
  }

  const LtProduct& product_;
  const LtFunctions& lt_;
  const LtSpaceLimits limits_;
  LibrarySpace space_;
  std::set<Row> rows_;
  std::vector<Row> proposals_;
  const cublasLtMatmulAlgo_t* base_ = nullptr;  // of the algorithm being looked at
  std::int64_t deadline_ns_ = 0;
};

}  // namespace

Result<LibrarySpace> enumerate_lt(const LtProduct& product, const LtSpaceLimits& limits) {
  return Enumerator(product, limits).run();
}

}  // namespace purlin::gpu
