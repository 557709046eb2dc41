// SPDX-License-Identifier: Apache-2.0
// Labels: the texts by which launches are told apart, each combination once.
//
// A row of a store names six entries: kernel, problem, platform, build, job, unit (a GPU of a
// node). An entry has a kind and fields; its text is the fields joined. Both engines store entries
// in a dictionary by this text. Plain values and pure functions.
#pragma once

#include "store/batch.h"
#include "store/filter.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::store {

enum class Kind : std::uint8_t {
  kKernel,    // readable name, recorded name, role
  kProblem,   // op, shape, dtype
  kPlatform,  // model, mig, driver, runtime
  kBuild,
  kJob,
  kUnit,  // node, UUID
  kWhy,   // of coverage
};
constexpr std::size_t kSeriesKinds = 6;  // those of a row

using Fields = std::vector<std::string>;
std::string join_fields(const Fields& fields);
Fields split_fields(std::string_view text);

struct Place {
  Kind kind;
  std::size_t field;
};
Place place_of(Dimension dimension);

// What a filter asks of the fields of one kind.
class KindFilter {
 public:
  KindFilter(const Filter& filter, Kind kind);
  bool any() const { return asked_.empty(); }
  bool matches(const Fields& fields) const;

 private:
  std::vector<std::pair<std::size_t, std::string>> asked_;
};

// The distinct entries of a batch, and for each row their numbers.
struct BatchLabels {
  using Entry = std::pair<Kind, std::string>;
  struct Row {
    std::array<std::uint32_t, kSeriesKinds> entries;  // by Kind
  };
  std::vector<Entry> entries;
  std::vector<Row> rows;  // as Batch::rows
  struct Coverage {
    std::uint32_t platform, unit, why;
  };
  std::vector<Coverage> coverage;  // as Batch::coverage
};
BatchLabels labels_of(const Batch& batch);
// "slurm 4711.0", "pod team/trainer-0", "container 3f…"; "" where nothing is known.
std::string job_of(const RunLabels& labels);

}  // namespace purlin::store
