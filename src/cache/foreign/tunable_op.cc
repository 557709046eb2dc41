// SPDX-License-Identifier: Apache-2.0
// PyTorch's TunableOp results: "Validator,NAME,VALUE" lines that say what they are valid under,
// then a line for each op: "GemmTunableOp_BFloat16_TN,tn_512_256_4096_ld_4096_4096_512,
// Gemm_Hipblaslt_1219,0.0105[,signature]": op, its parameters, the solution, milliseconds.
//
// The op's name and what follows the sizes are the kernel's name here, the validators the toolkit:
// both as they stand, so that the file can be written again.
#include "base/csv.h"
#include "base/text.h"
#include "cache/foreign/parts.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace purlin::cache::foreign {
namespace {

constexpr std::string_view kPrefix = "pytorch.";
constexpr std::size_t kMaxLines = 1'000'000, kMaxSkipped = 100;

std::string dtype_of(std::string_view op) {
  std::vector<std::string> names;
  for (const auto& [torch, name] :
       {std::pair{"_float_", "f32"}, std::pair{"_tf32_", "tf32"}, std::pair{"_double_", "f64"},
        std::pair{"_Half_", "f16"}, std::pair{"_BFloat16_", "bf16"},
        std::pair{"Float8_e4m3", "f8e4m3"}, std::pair{"Float8_e5m2", "f8e5m2"}})
    if (op.find(torch) != std::string_view::npos) names.emplace_back(name);
  return join(names, ",");
}

// "tn_512_256_4096_B_8_ld_4096_4096_512_rw_1_bias_None": the letters report for each operand
// whether it is transposed. m, n, k follow, then the batch count and leading dimensions, where
// present.
struct Parameters {
  std::string letters, rest;
  ProblemShape problem;
};
std::optional<Parameters> parse_parameters(std::string_view text) {
  const std::vector<std::string> parts = split(text, '_');
  Parameters parameters;
  if (parts.size() < 4 || parts[0].size() != 2 ||
      parts[0].find_first_not_of("ntc") != std::string::npos)
    return std::nullopt;
  parameters.letters = parts[0];
  std::size_t at = 1;
  const auto take = [&](const char* name) {
    const std::optional<std::int64_t> value =
        at < parts.size() ? parse_int(parts[at]) : std::nullopt;
    if (!value || *value < 1) return false;
    parameters.problem.set(name, *value);
    ++at;
    return true;
  };
  if (!take("M") || !take("N") || !take("K")) return std::nullopt;
  if (at < parts.size() && parts[at] == "B" && (++at, !take("B"))) return std::nullopt;
  if (at < parts.size() && parts[at] == "ld" &&
      (++at, !take("LDA") || !take("LDB") || !take("LDC")))
    return std::nullopt;
  parameters.rest = join({parts.begin() + static_cast<std::ptrdiff_t>(at), parts.end()}, "_");
  return parameters;
}

std::string parameters_text(std::string_view letters, const ProblemShape& problem,
                            std::string_view rest) {
  std::string text(letters);
  const auto add = [&](const char* name) {
    if (const std::int64_t* value = problem.find(name)) text += fmt::format("_{}", *value);
  };
  add("M");
  add("N");
  add("K");
  if (problem.find("B") != nullptr) text += "_B";
  add("B");
  if (problem.find("LDA") != nullptr) text += "_ld";
  add("LDA");
  add("LDB");
  add("LDC");
  return rest.empty() ? text : fmt::format("{}_{}", text, rest);
}

// BLAS counts in columns: what is not transposed lies column by column.
std::string layout_of(std::string_view letters) {
  const auto word = [](char letter) { return letter == 'n' ? "column" : "row"; };
  return fmt::format("A={},B={},C=column", word(letters[0]), word(letters[1]));
}

// What the kernel's name here is made of, so that it can be taken apart again.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

struct Validators {
  std::string text;  // "PT_VERSION=2.4.0;HIP_VERSION=702"
  std::string arch;
};

Status take_validator(const std::vector<std::string>& cells, std::size_t line, Validators& into) {
  if (cells.size() != 3 || cells[1].empty() || cells[1].find_first_of("=;") != std::string::npos ||
      cells[2].find(';') != std::string::npos || into.text.size() > 2000)
    return error(Code::kInvalid, "line {} is no 'Validator,NAME,VALUE'", line);
  into.text += fmt::format("{}{}={}", into.text.empty() ? "" : ";", cells[1], cells[2]);
  if (cells[1] == "GCN_ARCH_NAME") into.arch = cells[2].substr(0, cells[2].find(':'));
  return Status::ok();
}

}  // namespace

Result<ForeignEntries> read_tunable_op(std::string_view bytes, const ForeignFacts& facts) {
  Validators validators;
  ForeignEntries read;
  std::size_t line = 0;
  const auto skip = [&](const std::string& why) {
    if (read.skipped.size() < kMaxSkipped)
      read.skipped.push_back(fmt::format("line {}: {}", line, why));
  };
  for (const std::string& text : split(bytes, '\n')) {
    if (++line > kMaxLines) return error(Code::kInvalid, "it has more than {} lines", kMaxLines);
    if (trim(text).empty()) continue;
    const std::vector<std::string> cells = csv_cells(text);
    if (cells[0] == "Validator") {
      PURLIN_TRY(take_validator(cells, line, validators));
      continue;
    }
    if (cells[0].find("TunableOp") == std::string::npos)
      return error(Code::kInvalid,
                   "line {}: '{}' is no TunableOp; is it a results file that PyTorch wrote?", line,
                   elide_middle(cells[0], 40));
    const std::optional<double> ms =
        cells.size() >= 4 ? parse_double(trim(cells[3])) : std::nullopt;
    const std::optional<Parameters> parameters =
        cells.size() >= 4 ? parse_parameters(cells[1]) : std::nullopt;
    if (cells.size() < 4) {
      skip("it has fewer than four cells; files of untuned ops hold no winners");
    } else if (!is_plain(cells[0])) {
      skip(fmt::format("'{}' is no name of an op", elide_middle(cells[0], 60)));
    } else if (!parameters || !is_plain(parameters->rest)) {
      skip(fmt::format("'{}' is not such as tn_512_256_4096", elide_middle(cells[1], 60)));
    } else if (!ms || !std::isfinite(*ms) || *ms <= 0) {
      skip(fmt::format("'{}' is no time in milliseconds", elide_middle(cells[3], 20)));
    } else if (cells[2].empty()) {
      skip("it names no solution");
    } else {
      Entry entry;
      entry.key.op = "gemm";
      entry.key.kernel = fmt::format("{}{}{}{}", kPrefix, cells[0],
                                     parameters->rest.empty() ? "" : ":", parameters->rest);
      entry.key.dtype = dtype_of(cells[0]);
      entry.key.toolkit = validators.text;
      entry.key.arch = validators.arch;
      entry.key.layout = layout_of(parameters->letters);
      entry.problem = parameters->problem;
      for (const auto& item : entry.problem.items())
        entry.bucket_rules.emplace_back(item.first, BucketRule());
      entry.config.set("solution", cells[2]);
      entry.config.set("transposes", parameters->letters);
      if (cells.size() > 4 && !cells[4].empty()) entry.config.set("signature", cells[4]);
      entry.time_ms = *ms;
      entry.samples = {{*ms, 0}};
      PURLIN_TRY(finish(entry, ForeignFormat::kTunableOp, facts)
                     .with_context(fmt::format("line {}", line)));
      read.entries.push_back(std::move(entry));
    }
  }
  if (read.entries.empty())
    return error(Code::kInvalid, "it holds no winner{}",
                 read.skipped.empty() ? "" : "; " + read.skipped.front());
  return read;
}

Result<NamedFiles> write_tunable_op(std::span<const Entry> entries) {
  // One file for each set of validators and arch: PyTorch rejects a file whose validators are not
  // its own.
  std::map<std::pair<std::string, std::string>, std::map<std::string, const Entry*>> files;
  for (const Entry& entry : entries) {
    const Value* solution = entry.config.find("solution");
    const Value* letters = entry.config.find("transposes");
    if (!starts_with(entry.key.kernel, kPrefix) || solution == nullptr || letters == nullptr)
      continue;
    const std::string kernel = entry.key.kernel.substr(kPrefix.size());
    const std::size_t colon = kernel.find(':');
    const std::string rest = colon == std::string::npos ? "" : kernel.substr(colon + 1);
    std::string row = csv_cell(kernel.substr(0, colon)) + "," +
                      csv_cell(parameters_text(to_text(*letters), entry.problem, rest));
    const Entry*& held = files[{entry.key.toolkit, entry.key.arch}][row];
    if (held == nullptr || entry.recorded_at > held->recorded_at) held = &entry;
  }
  if (files.empty())
    return error(Code::kNotFound, "there is no entry of a kernel '{}…TunableOp…'", kPrefix);
  NamedFiles written;
  for (const auto& [about, rows] : files) {
    std::string text;
    for (const std::string& part : split(about.first, ';'))
      if (const std::size_t equals = part.find('='); equals != std::string::npos)
        text += fmt::format("Validator,{},{}\n", csv_cell(part.substr(0, equals)),
                            csv_cell(part.substr(equals + 1)));
    for (const auto& [row, entry] : rows) {
      text += fmt::format("{},{},{}", row, csv_cell(to_text(*entry->config.find("solution"))),
                          entry->time_ms);
      if (const Value* signature = entry->config.find("signature"))
        text += "," + csv_cell(to_text(*signature));
      text += "\n";
    }
    std::string name = "tunableop_results";
    if (files.size() > 1) name += fmt::format("_{}_{}", about.second, written.size());
    std::replace(name.begin(), name.end(), '/', '_');
    written.emplace_back(name + ".csv", std::move(text));
  }
  return written;
}

}  // namespace purlin::cache::foreign
