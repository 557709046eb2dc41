// SPDX-License-Identifier: Apache-2.0
// The matrix file, and the variant of each cell.
#include "base/files.h"
#include "base/text.h"
#include "base/toml.h"
#include "guard/matrix/matrix.h"
#include "guard/suite/command_suite.h"

#include <algorithm>
#include <set>

namespace purlin::guard {
namespace {

constexpr std::size_t kMaxMatrixBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxFactors = 6;
constexpr std::size_t kMaxLevels = 16;
constexpr std::size_t kMaxCells = 256;
constexpr std::string_view kKinds[] = {"code", "compiler", "driver", "hardware", "environment"};

Result<MatrixLevel> parse_level(const Toml& node, const std::string& folder) {
  MatrixLevel level;
  if (node.string() != nullptr) {  // a name alone: this machine cannot set the level
    level.name = *node.string();
    return level;
  }
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "a level"));
  PURLIN_ASSIGN(level.name, table.string("name"));
  PURLIN_ASSIGN(level.revision, table.string_or("revision", ""));
  PURLIN_ASSIGN(level.cache, table.string_or("cache", ""));
  if (!level.cache.empty()) level.cache = join_path(folder, level.cache);
  PURLIN_TRY(parse_environment(table.optional("environment"), &level.environment));
  PURLIN_TRY(table.finish());
  return level;
}

Result<MatrixFactor> parse_factor(const Toml& node, const std::string& folder) {
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[[factors]]"));
  MatrixFactor factor;
  PURLIN_ASSIGN(factor.factor.name, table.string("name"));
  PURLIN_ASSIGN(factor.factor.kind, table.string("kind"));
  if (std::find(std::begin(kKinds), std::end(kKinds), factor.factor.kind) == std::end(kKinds))
    return node.find("kind")->complain(
        fmt::format("'kind' must be one of code, compiler, driver, hardware and environment, not "
                    "'{}'",
                    factor.factor.kind));
  PURLIN_ASSIGN(factor.here, table.string_or("here", ""));
  PURLIN_ASSIGN(const Toml* levels, table.required("levels"));
  PURLIN_TRY(table.finish());
  if (levels->array() == nullptr || levels->array()->empty() ||
      levels->array()->size() > kMaxLevels)
    return levels->complain("'levels' must be a list of 1 to 16 levels");
  std::set<std::string> names;
  for (const Toml& entry : *levels->array()) {
    PURLIN_ASSIGN(MatrixLevel level, parse_level(entry, folder));
    if (level.name.empty() || level.name.find_first_of("=,/") != std::string::npos)
      return entry.complain("a level needs a name without '=', ',' and '/'");
    if (!names.insert(level.name).second)
      return entry.complain(fmt::format("the level '{}' is there twice", level.name));
    factor.factor.levels.push_back(level.name);
    factor.levels.push_back(std::move(level));
  }
  return factor;
}

// One level for each factor, by name; a factor of one level may be left out.
Result<Cell> parse_cell(const Toml& node, const std::vector<MatrixFactor>& factors) {
  if (node.table() == nullptr)
    return node.complain("'levels' must be a table: {build = \"v1\", driver = \"570\"}");
  Cell cell(factors.size(), -1);
  for (const auto& [name, value] : *node.table()) {
    const auto factor = std::find_if(
        factors.begin(), factors.end(),
        [&, &name = name](const MatrixFactor& other) { return other.factor.name == name; });
    if (factor == factors.end())
      return value.complain(fmt::format("there is no factor '{}'", name));
    const std::vector<std::string>& levels = factor->factor.levels;
    const auto level = value.string() == nullptr
                           ? levels.end()
                           : std::find(levels.begin(), levels.end(), *value.string());
    if (level == levels.end())
      return value.complain(
          fmt::format("the factor '{}' has the levels {}", name, join(levels, ", ")));
    cell[static_cast<std::size_t>(factor - factors.begin())] =
        static_cast<int>(level - levels.begin());
  }
  for (std::size_t i = 0; i < cell.size(); ++i) {
    if (cell[i] < 0 && factors[i].levels.size() == 1) cell[i] = 0;
    if (cell[i] < 0)
      return node.complain(fmt::format("the level of '{}' is missing", factors[i].factor.name));
  }
  return cell;
}

Status parse_workload(TomlTable& table, const std::string& folder, Matrix* matrix) {
  PURLIN_ASSIGN(const std::string suite, table.string_or("suite", ""));
  const Toml* command = table.optional("command");
  if (suite.empty() == (command == nullptr))
    return table.node().complain("a matrix runs a 'suite' or a [command]: name one of them");
  if (command == nullptr) {
    matrix->suite = join_path(folder, suite);
    return file_exists(matrix->suite) ? Status::ok()
                                      : table.node().find("suite")->complain(fmt::format(
                                            "the suite '{}' does not exist", matrix->suite));
  }
  PURLIN_ASSIGN(matrix->command, parse_command(*command, Thresholds{}));
  return Status::ok();
}

}  // namespace

std::vector<Factor> Matrix::plain_factors() const {
  std::vector<Factor> plain;
  for (const MatrixFactor& factor : factors) plain.push_back(factor.factor);
  return plain;
}

std::string Matrix::text(const Cell& cell) const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < cell.size(); ++i)
    parts.push_back(factors[i].factor.name + "=" +
                    factors[i].factor.levels[static_cast<std::size_t>(cell[i])]);
  return join(parts, ",");
}

std::vector<Cell> Matrix::cells_here() const {
  std::vector<Cell> cells = {{}};
  for (const MatrixFactor& factor : factors) {
    std::vector<Cell> longer;
    for (const Cell& cell : cells)
      for (std::size_t level = 0; level < factor.levels.size(); ++level)
        if (factor.here.empty() || factor.levels[level].name == factor.here) {
          longer.push_back(cell);
          longer.back().push_back(static_cast<int>(level));
        }
    cells = std::move(longer);
  }
  return cells;
}

Result<CellVariant> variant_of(const Matrix& matrix, const Cell& cell) {
  CellVariant variant;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const MatrixLevel& level = matrix.factors[i].levels[static_cast<std::size_t>(cell[i])];
    for (auto [own, shared, what] : {std::tuple{&level.revision, &variant.revision, "revision"},
                                     std::tuple{&level.cache, &variant.cache, "cache"}}) {
      if (own->empty()) continue;
      if (!shared->empty())
        return error(Code::kInvalid, "{}: two factors set the {} of a cell", matrix.file, what);
      *shared = *own;
    }
    for (const auto& [name, value] : level.environment)
      if (!variant.environment.emplace(name, value).second)
        return error(Code::kInvalid, "{}: two factors set {} in the environment of a cell",
                     matrix.file, name);
  }
  return variant;
}

Result<Matrix> load_matrix(const std::string& path,
                           const std::map<std::string, std::string>& here) {
  if (!file_exists(path)) return error(Code::kNotFound, "there is no matrix '{}'", path);
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxMatrixBytes));
  return parse_matrix(text, path, here);
}

Result<Matrix> parse_matrix(std::string_view text, const std::string& path,
                            const std::map<std::string, std::string>& here) {
  PURLIN_ASSIGN(const Toml document, Toml::parse(text, path));
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(document, "the matrix"));
  PURLIN_ASSIGN(const std::string schema, table.string("schema"));
  if (schema != "purlin.matrix/1")
    return document.find("schema")->complain(
        fmt::format("schema '{}' is not \"purlin.matrix/1\"", schema));
  const std::string folder = parent_path(absolute_path(path));
  Matrix matrix;
  matrix.file = path;
  PURLIN_ASSIGN(matrix.name, table.string("name"));
  PURLIN_TRY(parse_workload(table, folder, &matrix));
  PURLIN_ASSIGN(const std::int64_t rounds, table.integer_or("rounds", matrix.rounds));
  // A share counts from p <= 1 % on, two-sided: 7 rounds that all agree have 1.6 %.
  if (rounds < 8 || rounds > 1000)
    return document.find("rounds")->complain("'rounds' must lie between 8 and 1000");
  matrix.rounds = static_cast<int>(rounds);
  PURLIN_ASSIGN(matrix.floor, table.number_or("floor", matrix.floor));
  if (!(matrix.floor > 0 && matrix.floor <= 1))
    return document.find("floor")->complain("'floor' must lie above 0 and up to 1");
  PURLIN_ASSIGN(const Toml* factors, table.required("factors"));
  const Toml* cells = table.optional("cells");
  PURLIN_TRY(table.finish());
  if (factors->array() == nullptr || factors->array()->empty() ||
      factors->array()->size() > kMaxFactors)
    return factors->complain("a matrix has 1 to 6 [[factors]]");
  for (const Toml& node : *factors->array()) {
    PURLIN_ASSIGN(MatrixFactor factor, parse_factor(node, folder));
    for (const MatrixFactor& other : matrix.factors)
      if (other.factor.name == factor.factor.name)
        return node.complain(fmt::format("the factor '{}' is there twice", factor.factor.name));
    if (const auto said = here.find(factor.factor.name); said != here.end())
      factor.here = said->second;
    if (!factor.here.empty() && std::find(factor.factor.levels.begin(), factor.factor.levels.end(),
                                          factor.here) == factor.factor.levels.end())
      return node.complain(fmt::format("'here' is '{}', which is no level of '{}'", factor.here,
                                       factor.factor.name));
    matrix.factors.push_back(std::move(factor));
  }
  for (const auto& [name, level] : here)
    if (std::none_of(
            matrix.factors.begin(), matrix.factors.end(),
            [&, &name = name](const MatrixFactor& factor) { return factor.factor.name == name; }))
      return error(Code::kInvalid, "{}: there is no factor '{}'", path, name);
  if (matrix.cells_here().size() > kMaxCells)
    return document.complain(fmt::format("the levels make {} cells to run; at most {} are",
                                         matrix.cells_here().size(), kMaxCells));
  if (cells == nullptr) return matrix;
  if (cells->array() == nullptr) return cells->complain("must be a list of tables: [[cells]]");
  for (const Toml& node : *cells->array()) {
    PURLIN_ASSIGN(TomlTable entry, TomlTable::of(node, "[[cells]]"));
    PURLIN_ASSIGN(const Toml* levels, entry.required("levels"));
    MatrixRecording recording;
    PURLIN_ASSIGN(recording.cell, parse_cell(*levels, matrix.factors));
    PURLIN_ASSIGN(const std::string samples, entry.string("samples"));
    recording.path = join_path(folder, samples);
    PURLIN_TRY(entry.finish());
    matrix.recordings.push_back(std::move(recording));
    if (matrix.recordings.size() > kMaxCells) return node.complain("too many [[cells]]");
  }
  return matrix;
}

}  // namespace purlin::guard
