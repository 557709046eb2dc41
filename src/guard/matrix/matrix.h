// SPDX-License-Identifier: Apache-2.0
// Matrix: one suite or command over builds, toolkits, drivers, devices, environments: which of them
// a slowdown belongs to. docs/formats/matrix.md is the reference of the file.
//
// Cells that this machine can run are run here, in rounds of one fresh process per cell in random
// order; cells that it cannot (another driver, another device) come from recordings that the same
// matrix made there. Thread-safety: belongs to one thread. Failure: a Status where the file is
// wrong or the machine cannot go on; a cell that fails is named and left out.
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

// What is different about a level, where this machine can bring it about.
struct MatrixLevel {
  std::string name;
  std::string revision;  // git
  std::string cache;     // directory of a config cache
  std::map<std::string, std::string> environment;
};

struct MatrixFactor {
  Factor factor;
  std::vector<MatrixLevel> levels;
  // The level that this machine has, where levels cannot be brought about: "580"; "" = all can.
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
  // Cells to run here: all combinations of the levels that this machine can have.
  std::vector<Cell> cells_here() const;
};

// `here` replaces what the file says of this machine: {"driver": "570"}.
Result<Matrix> parse_matrix(std::string_view text, const std::string& path,
                            const std::map<std::string, std::string>& here);
Result<Matrix> load_matrix(const std::string& path, const std::map<std::string, std::string>& here);

// What the levels of a cell amount to.
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
  // Of each item, its median in each round; rounds in which it failed are left out of the item.
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
  std::string journal;   // a killed run goes on from it; "" = it starts anew
  std::string identity;  // of what is run, for the journal
  std::function<void(const std::string&, int done, int of)> progress;  // may be empty
  // Watches the device; a launch it finds unfit is taken again, twice at most.
  Watch* watch = nullptr;
  std::optional<unsigned> locked_mhz;  // for the record, as in PairsOptions
};
Result<MatrixResult> run_matrix(const MatrixRun& run);

// The recording of one cell, as MatrixRecording reads it.
std::string samples_csv(const MatrixCell& cell);

}  // namespace purlin::guard
