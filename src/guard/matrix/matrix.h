// SPDX-License-Identifier: Apache-2.0
// Matrix: one suite or command over builds, toolkits, drivers, devices, environments, and which of
// them caused a slowdown. docs/formats/matrix.md is the reference of the file.
//
// This machine runs its own cells in rounds of one fresh process per cell, in random order. Cells
// of another driver or device come from recordings of the same matrix made there. Thread-safety:
// belongs to one thread. Failure: a Status where the file is wrong or the machine cannot continue.
// A cell that fails is named and left out.
#pragma once

#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "guard/arms/pairs.h"
#include "guard/gate/samples.h"
#include "guard/matrix/attribution.h"
#include "guard/suite/contender.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::guard {

// The settings of a level that this machine can apply.
struct MatrixLevel {
  std::string name;
  std::string revision;  // git
  std::string cache;     // directory of a config cache
  std::map<std::string, std::string> environment;
};

struct MatrixFactor {
  Factor factor;
  std::vector<MatrixLevel> levels;
  // The level of this machine, for a factor that it cannot set: "580"; "" = it can set all.
  std::string here;
};

struct MatrixRecording {
  Cell cell;
  std::string path;  // samples CSV
};

struct Matrix {
  std::string file, name;
  std::string suite;    // path, or
  CommandSpec command;  // a command that prints times
  int rounds = 12;
  double floor = 0.02;
  std::vector<MatrixFactor> factors;
  std::vector<MatrixRecording> recordings;

  std::vector<Factor> plain_factors() const;
  std::string text(const Cell& cell) const;  // "build=v1,toolkit=13.0"
  // Cells to run here: all combinations of the levels that this machine can set.
  std::vector<Cell> cells_here() const;
};

// `here` replaces the levels of this machine in the file: {"driver": "570"}.
Result<Matrix> parse_matrix(std::string_view text, const std::string& path,
                            const std::map<std::string, std::string>& here);
Result<Matrix> load_matrix(const std::string& path, const std::map<std::string, std::string>& here);

// The settings of all levels of a cell.
struct CellVariant {
  std::string revision, cache;
  std::map<std::string, std::string> environment;
};
Result<CellVariant> variant_of(const Matrix& matrix, const Cell& cell);

struct MatrixCell {
  Cell cell;
  bool elsewhere = false;
  std::string source;                    // the recording's path; "" = run here
  std::string problem;                   // why it is left out; "" = measured
  std::map<Item, std::string> failures;  // items left out of it, and why
  // Of each item, its median in each round, without the rounds in which it failed.
  std::map<Item, std::vector<double>> times_ns;
  std::map<Item, std::vector<ProcessReading>> readings;  // of cells run here
};

struct MatrixResult {
  std::vector<MatrixCell> cells;
  struct ItemResult {
    Item item;
    Attribution attribution;
  };
  std::vector<ItemResult> items;  // largest slowdown first
  PairsRecord measurement;        // `replayed` counts rounds, `rejected_pairs` launches
};

struct MatrixRun {
  const Matrix& matrix;
  std::function<Result<Contender>(const Cell&, const CellVariant&)> open;
  Random& random;
  std::string journal;   // a killed run continues from it; "" = it starts again
  std::string identity;  // of all inputs, for the journal
  std::function<void(const std::string&, int done, int of)> progress;  // may be empty
  // Watches the device. An unfit launch is repeated, twice at most.
  Watch* watch = nullptr;
  std::optional<unsigned> locked_mhz;  // for the record, as in PairsOptions
};
Result<MatrixResult> run_matrix(const MatrixRun& run);

// The recording of one cell, as MatrixRecording reads it.
std::string samples_csv(const MatrixCell& cell);

}  // namespace purlin::guard
