// SPDX-License-Identifier: Apache-2.0
// TOML to KernelSpec. Each read_* function takes one table of the file; check_names then makes sure
// that every expression uses only names that exist where it stands.
#include "base/files.h"
#include "base/text.h"
#include "base/toml.h"
#include "model/expression/node.h"
#include "model/expression/parameter.h"
#include "model/spec/default_reference.h"
#include "model/spec/includes.h"
#include "model/spec/library.h"
#include "model/spec/nodes.h"
#include "model/spec/spec.h"
#include "model/spec/t1.h"

#include <algorithm>
#include <cmath>

namespace purlin {
namespace {

using namespace spec_nodes;

constexpr std::size_t kMaxParameters = 256;
constexpr std::size_t kMaxValues = 65536;  // of one parameter
constexpr std::size_t kMaxArguments = 256;
constexpr std::size_t kMaxConstraints = 4096;
constexpr std::size_t kMaxSourceBytes = std::size_t{16} << 20;
constexpr const char* kLanguages[] = {"cuda", "opencl", "triton"};
constexpr const char* kDeviceFacts[] = {"device_max_threads", "device_shared_memory",
                                        "device_units", "device_warp_size", "device_is_cpu"};

class SpecReader {
 public:
  SpecReader(const std::string& path, const SourceReader& read) : read_(read) { spec_.file = path; }

  Result<KernelSpec> read(const Toml& document) {
    PURLIN_ASSIGN(TomlTable top, TomlTable::of(document, "the spec"));
    PURLIN_TRY(read_head(top));
    if (const Toml* node = top.optional("problem")) PURLIN_TRY(read_problem(*node));
    if (const Toml* node = top.optional("library")) return read_library(top, *node);
    PURLIN_ASSIGN(const Toml* kernel, top.required("kernel"));
    PURLIN_TRY(read_kernel(*kernel));
    if (const Toml* node = top.optional("parameters")) PURLIN_TRY(read_parameters(*node));
    // An empty list says the same as none: generated specs have one.
    if (const Toml* node = top.optional("constraints");
        node != nullptr && (node->array() == nullptr || !node->array()->empty()))
      PURLIN_TRY(read_constraints(*node));
    PURLIN_TRY(add_conditions());
    if (const Toml* node = top.optional("limits")) {
      PURLIN_ASSIGN(spec_.limits, to_expressions(*node, "limits", kMaxConstraints));
    }
    PURLIN_ASSIGN(const Toml* launch, top.required("launch"));
    PURLIN_ASSIGN(spec_.launch, read_launch(*launch, "[launch]"));
    PURLIN_ASSIGN(const Toml* arguments, top.required("arguments"));
    PURLIN_TRY(read_arguments(*arguments));
    PURLIN_ASSIGN(const Toml* reference, top.required("reference"));
    PURLIN_TRY(read_reference(*reference));
    if (const Toml* node = top.optional("tolerance")) PURLIN_TRY(read_tolerance(*node));
    if (const Toml* node = top.optional("work")) PURLIN_TRY(read_work(*node));
    if (const Toml* node = top.optional("bucket")) PURLIN_TRY(read_bucket(*node));
    if (const Toml* node = top.optional("measure")) PURLIN_TRY(read_measure(*node));
    PURLIN_TRY(top.finish());
    PURLIN_TRY(check_names());
    return std::move(spec_);
  }

 private:
  // A library's operation: what else a spec has follows from it (library_spec_text).
  Result<KernelSpec> read_library(TomlTable& top, const Toml& node) {
    PURLIN_ASSIGN(const LibraryOperation operation, read_library_operation(node));
    std::vector<std::string> wanted = {"M", "N", "K"};
    if (operation.batched) wanted.insert(wanted.begin(), "BATCH");
    std::vector<std::string> given = dimensions_;
    std::sort(given.begin(), given.end());
    std::sort(wanted.begin(), wanted.end());
    if (given != wanted)
      return node.complain(fmt::format("[problem] must have {} and nothing else",
                                       operation.batched ? "BATCH, M, N and K" : "M, N and K"));
    if (!spec_.name.empty() && spec_.name != operation.label())
      return top.node().find("name")->complain(
          fmt::format("the name of a [library] spec follows from its operation, so that programs "
                      "find its winners: leave it out, or say '{}'",
                      operation.label()));
    spec_.name = operation.label();
    spec_.library = operation;
    const LibrarySpecText text = library_spec_text(operation);
    PURLIN_ASSIGN(const Toml rest, Toml::parse(text.toml, spec_.file + " [library]"));
    const SourceReader generated = [&](const std::string& path) -> Result<std::string> {
      return base_name(path) == kLibraryReferenceFile ? text.reference : operation.text();
    };
    SpecReader inner(spec_.file, generated);
    inner.spec_ = std::move(spec_);
    inner.dimensions_ = dimensions_;
    PURLIN_TRY(inner.read_kernel(*rest.find("kernel")));
    PURLIN_TRY(inner.read_parameters(*rest.find("parameters")));
    PURLIN_ASSIGN(inner.spec_.launch, read_launch(*rest.find("launch"), "[launch]"));
    PURLIN_TRY(inner.read_arguments(*rest.find("arguments")));
    PURLIN_TRY(inner.read_reference(*rest.find("reference")));
    PURLIN_TRY(inner.read_work(*rest.find("work")));
    inner.spec_.rtol = library_rtol(operation);
    inner.spec_.atol = 0;  // by the depth of the problem: library_tolerance
    inner.spec_.scaled_atol = false;
    if (const Toml* tolerance = top.optional("tolerance")) {
      PURLIN_TRY(inner.read_tolerance(*tolerance));
      inner.spec_.library_tolerance = false;
    }
    if (const Toml* bucket = top.optional("bucket")) PURLIN_TRY(inner.read_bucket(*bucket));
    inner.spec_.rotate_inputs = true;  // weights come from memory in a model
    if (const Toml* measure = top.optional("measure")) PURLIN_TRY(inner.read_measure(*measure));
    PURLIN_TRY(top.finish());
    PURLIN_TRY(inner.check_names());
    return std::move(inner.spec_);
  }

  Status read_head(TomlTable& top) {
    PURLIN_ASSIGN(const std::string schema, top.string("schema"));
    if (schema != "purlin.spec/1")
      return top.node().find("schema")->complain(
          fmt::format("schema '{}' is not 'purlin.spec/1', which this Purlin reads", schema));
    const bool library = top.node().find("library") != nullptr;
    if (!library || top.node().find("name") != nullptr) {
      PURLIN_ASSIGN(spec_.name, top.string("name"));
      PURLIN_TRY(check_label(*top.node().find("name"), "name", spec_.name));
    }
    PURLIN_ASSIGN(spec_.op, top.string_or("op", library ? "gemm" : spec_.name));
    if (const Toml* op = top.node().find("op")) PURLIN_TRY(check_label(*op, "op", spec_.op));
    PURLIN_ASSIGN(spec_.summary, top.string_or("summary", ""));
    PURLIN_ASSIGN(const std::int64_t seed, top.integer_or("seed", 1));
    spec_.seed = static_cast<std::uint64_t>(seed);
    return Status::ok();
  }

  Status read_problem(const Toml& node) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[problem]"));
    for (const auto& [name, value] : *node.table()) {
      if (name == "presets") continue;
      PURLIN_TRY(check_name(value, name));
      PURLIN_ASSIGN(const std::int64_t extent, to_extent(value, name));
      spec_.problem.set(name, extent);
      dimensions_.push_back(name);
    }
    const Toml* presets = table.optional("presets");
    if (presets == nullptr) return Status::ok();
    PURLIN_ASSIGN(TomlTable all, TomlTable::of(*presets, "[problem.presets]"));
    for (const auto& [name, preset] : *all.node().table()) {
      PURLIN_ASSIGN(TomlTable one, TomlTable::of(preset, fmt::format("preset '{}'", name)));
      ProblemShape shape = spec_.problem;
      for (const auto& [dimension, value] : *one.node().table()) {
        if (spec_.problem.find(dimension) == nullptr)
          return value.complain(fmt::format("[problem] has no dimension '{}'{}", dimension,
                                            suggestion(dimension, dimensions_)));
        PURLIN_ASSIGN(const std::int64_t extent, to_extent(value, dimension));
        shape.set(dimension, extent);
      }
      spec_.presets[name] = shape;
    }
    return Status::ok();
  }

  Status read_kernel(const Toml& node) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[kernel]"));
    PURLIN_ASSIGN(spec_.entry, table.string("entry"));
    PURLIN_ASSIGN(spec_.sources, read_sources(table, "kernel"));
    return table.finish();
  }

  Result<std::map<std::string, SourceText>> read_sources(TomlTable& table, std::string_view what) {
    std::map<std::string, SourceText> sources;
    for (const char* language : kLanguages) {
      const Toml* node = table.optional(language);
      if (node == nullptr) continue;
      const std::string title = fmt::format("[{}.{}]", what, language);
      PURLIN_ASSIGN(TomlTable source, TomlTable::of(*node, title));
      SourceText text;
      PURLIN_ASSIGN(text.file, source.string("file"));
      PURLIN_ASSIGN(text.options, source.strings_or_empty("options"));
      PURLIN_ASSIGN(text.include, source.strings_or_empty("include"));
      if (std::string_view(language) == "cuda") PURLIN_TRY(read_compiler(source, text));
      PURLIN_TRY(source.finish());
      const std::string path = join_path(parent_path(spec_.file), text.file);
      Result<std::string> contents = read_(path);
      if (!contents.is_ok())
        return contents.status().with_context(node->find("file")->where() + ": " + title);
      text.text = std::move(contents).value();
      PURLIN_TRY(read_headers(*node, parent_path(path), text));
      sources[language] = std::move(text);
    }
    if (sources.empty())
      return table.node().complain(fmt::format(
          "[{}] needs a source: [{}.cuda] or [{}.opencl] with file = \"…\"", what, what, what));
    return sources;
  }

  static Status read_compiler(TomlTable& table, SourceText& source) {
    PURLIN_ASSIGN(const std::string compiler, table.string_or("compiler", "nvrtc"));
    if (compiler != "nvrtc" && compiler != "nvcc")
      return table.node()
          .find("compiler")
          ->complain(fmt::format("compiler is \"nvrtc\" or \"nvcc\", not '{}'", compiler));
    source.compiler = compiler == "nvcc" ? compiler : "";
    PURLIN_ASSIGN(source.archs, table.strings_or_empty("arch"));
    for (const std::string& arch : source.archs)
      if (!starts_with(arch, "sm_") || arch.find_first_of("0123456789") != 3)
        return table.node().find("arch")->complain(
            fmt::format("arch lists architectures such as \"sm_90a\", not '{}'", arch));
    return Status::ok();
  }

  Status read_headers(const Toml& node, const std::string& folder, SourceText& source) const {
    std::vector<std::string> folders;
    for (const std::string& include : source.include)
      folders.push_back(join_path(parent_path(spec_.file), include));
    for (std::string& include : include_folders(source.options))
      folders.push_back(std::move(include));
    Result<std::string> hash =
        headers_hash(source.text, folder, folders,
                     [this](const std::string& path) -> std::optional<std::string> {
                       Result<std::string> text = read_(path);
                       if (!text.is_ok()) return std::nullopt;
                       return std::move(text).value();
                     });
    if (!hash.is_ok()) return hash.status().with_context(node.where());
    source.headers_hash = std::move(hash).value();
    return Status::ok();
  }

  Status read_parameters(const Toml& node) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[parameters]"));
    if (node.table()->size() > kMaxParameters)
      return node.complain(fmt::format("more than {} parameters", kMaxParameters));
    for (const auto& [name, value] : *table.node().table()) {
      PURLIN_TRY(check_name(value, name));
      if (spec_.problem.find(name) != nullptr)
        return value.complain(fmt::format("'{}' is already a dimension of [problem]", name));
      Parameter parameter;
      parameter.name = name;
      PURLIN_TRY(read_parameter(value, parameter));
      spec_.parameters.push_back(std::move(parameter));
      parameters_.push_back(name);
    }
    return Status::ok();
  }

  static Status read_parameter(const Toml& node, Parameter& parameter) {
    if (node.array() != nullptr) return read_values(node, parameter);
    if (node.table() == nullptr)
      return node.complain(
          fmt::format("'{0}' must be a list of values, such as {0} = [16, 32], "
                      "or a table with values, powers_of_two or range",
                      parameter.name));
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "parameter '" + parameter.name + "'"));
    const Toml* values = table.optional("values");
    const Toml* powers = table.optional("powers_of_two");
    const Toml* range = table.optional("range");
    const Toml* step = table.optional("step");
    const Toml* preset = table.optional("default");
    if (const Toml* when = table.optional("when")) {
      PURLIN_ASSIGN(parameter.when, to_expression(*when, "when"));
    }
    PURLIN_TRY(table.finish());
    if ((values != nullptr) + (powers != nullptr) + (range != nullptr) != 1)
      return node.complain(fmt::format(
          "parameter '{}' needs exactly one of values, powers_of_two and range", parameter.name));
    if (step != nullptr && range == nullptr) return step->complain("'step' belongs to 'range'");
    if (values != nullptr) PURLIN_TRY(read_values(*values, parameter));
    if (powers != nullptr) PURLIN_TRY(read_powers(*powers, parameter));
    if (range != nullptr) PURLIN_TRY(read_range(*range, step, parameter));
    if (preset == nullptr) return Status::ok();
    PURLIN_ASSIGN(parameter.preset, to_value(*preset));
    const auto& all = parameter.values;
    if (std::find(all.begin(), all.end(), *parameter.preset) == all.end())
      return preset->complain(fmt::format("default {} of '{}' is not one of its values",
                                          to_text(*parameter.preset), parameter.name));
    return Status::ok();
  }

  static Status read_values(const Toml& node, Parameter& parameter) {
    if (node.array() == nullptr)
      return node.complain(fmt::format("values of '{}' must be a list", parameter.name));
    if (node.array()->empty())
      return node.complain(fmt::format("'{}' has no values", parameter.name));
    if (node.array()->size() > kMaxValues) return too_many(node, parameter);
    std::set<std::pair<std::size_t, std::string>> seen;
    for (const Toml& item : *node.array()) {
      PURLIN_ASSIGN(Value value, to_value(item));
      if (!seen.emplace(value.index(), to_text(value)).second)
        return item.complain(fmt::format("'{}' lists {} twice", parameter.name, to_text(value)));
      parameter.values.push_back(std::move(value));
    }
    return Status::ok();
  }

  static Status too_many(const Toml& node, const Parameter& parameter) {
    return node.complain(fmt::format("'{}' has more than {} values", parameter.name, kMaxValues));
  }

  // The two ends of powers_of_two and range.
  static Result<std::pair<Value, Value>> read_ends(const Toml& node, std::string_view what) {
    if (node.array() == nullptr || node.array()->size() != 2)
      return node.complain(fmt::format("{} takes two ends: {} = [8, 64]", what, what));
    PURLIN_ASSIGN(Value low, to_value((*node.array())[0]));
    PURLIN_ASSIGN(Value high, to_value((*node.array())[1]));
    return std::pair{std::move(low), std::move(high)};
  }

  static Status read_powers(const Toml& node, Parameter& parameter) {
    PURLIN_ASSIGN(const auto ends, read_ends(node, "powers_of_two"));
    const auto* low = std::get_if<std::int64_t>(&ends.first);
    const auto* high = std::get_if<std::int64_t>(&ends.second);
    const auto is_power = [](const std::int64_t* end) {
      return end != nullptr && *end > 0 && (*end & (*end - 1)) == 0;
    };
    if (!is_power(low) || !is_power(high) || *low > *high)
      return node.complain("powers_of_two takes two powers of two, the smaller first");
    // Stops before doubling past the end, which may be 2^62.
    for (std::int64_t value = *low;; value *= 2) {
      parameter.values.emplace_back(value);
      if (value == *high) return Status::ok();
    }
  }

  static Status read_range(const Toml& node, const Toml* step_node, Parameter& parameter) {
    PURLIN_ASSIGN(const auto ends, read_ends(node, "range"));
    Value step = std::int64_t{1};
    if (step_node != nullptr) {
      PURLIN_ASSIGN(step, to_value(*step_node));
    }
    const auto number = [](const Value& value) {
      const bool usable =
          std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
      return usable ? to_double(value).value() : std::nan("");
    };
    const double low = number(ends.first), high = number(ends.second), by = number(step);
    if (!(low <= high)) return node.complain("range takes two numbers, the smaller first");
    if (!(by > 0)) return step_node->complain("step must be a positive number");
    // A real end counts as reached when only rounding keeps the last step from it.
    const double steps = std::floor((high - low) / by + 1e-9);
    if (!(steps < static_cast<double>(kMaxValues))) return too_many(node, parameter);
    const auto* first = std::get_if<std::int64_t>(&ends.first);
    const auto* stride = std::get_if<std::int64_t>(&step);
    for (int i = 0; i <= static_cast<int>(steps); ++i) {
      if (first != nullptr && stride != nullptr) {
        parameter.values.emplace_back(*first + i * *stride);
      } else {
        parameter.values.emplace_back(low + i * by);
      }
    }
    return Status::ok();
  }

  Status read_constraints(const Toml& node) {
    PURLIN_ASSIGN(spec_.constraints, to_expressions(node, "constraints", kMaxConstraints));
    return Status::ok();
  }

  // What keeps an idle parameter at its default value.
  Status add_conditions() {
    for (const Parameter& parameter : spec_.parameters) {
      if (!parameter.when) continue;
      const auto& [condition, where, label] = *parameter.when;
      const auto& names = condition.names();
      if (std::find(names.begin(), names.end(), parameter.name) != names.end())
        return error(Code::kInvalid, "{}: 'when' of '{}' depends on '{}' itself", where,
                     parameter.name, parameter.name);
      const Value& idle = parameter.preset ? *parameter.preset : parameter.values.front();
      const std::string text =
          fmt::format("{} or {} == {}", condition.enclosed(), parameter.name, literal(idle));
      const Result<Expression> parsed = Expression::parse(text);
      if (!parsed.is_ok()) return parsed.status().with_context(where + ": when");
      spec_.constraints.push_back(
          {*parsed, where,
           fmt::format("{} is {} unless {}", parameter.name, literal(idle), condition.text())});
    }
    return Status::ok();
  }

  Result<LaunchSpec> read_launch(const Toml& node, std::string_view what) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, what));
    LaunchSpec launch;
    PURLIN_ASSIGN(const Toml* grid, table.required("grid"));
    PURLIN_ASSIGN(launch.grid, to_expressions(*grid, "grid", 3));
    PURLIN_ASSIGN(const Toml* block, table.required("block"));
    PURLIN_ASSIGN(launch.block, to_expressions(*block, "block", 3));
    if (const Toml* shared = table.optional("shared_memory")) {
      PURLIN_ASSIGN(launch.dynamic_shared_bytes, to_expression(*shared, "shared_memory"));
    }
    PURLIN_TRY(table.finish());
    return launch;
  }

  Status read_arguments(const Toml& node) {
    if (node.array() == nullptr || node.array()->empty() || node.array()->size() > kMaxArguments)
      return node.complain(
          fmt::format("arguments must be 1 to {} tables, one [[arguments]] per kernel parameter",
                      kMaxArguments));
    bool writes = false;
    for (const Toml& item : *node.array()) {
      PURLIN_ASSIGN(Argument argument, read_argument(item));
      if (find_argument(argument.name) != nullptr)
        return item.complain(fmt::format("there are two arguments '{}'", argument.name));
      writes |= is_result(argument);
      spec_.arguments.push_back(std::move(argument));
      argument_names_.push_back(spec_.arguments.back().name);
    }
    if (!writes)
      return node.complain("no argument has role \"output\" or \"inout\"; what would be verified?");
    return Status::ok();
  }

  static bool is_result(const Argument& argument) {
    return argument.role == Argument::Role::kOutput || argument.role == Argument::Role::kInOut;
  }

  const Argument* find_argument(std::string_view name) const {
    for (const Argument& argument : spec_.arguments)
      if (argument.name == name) return &argument;
    return nullptr;
  }

  static Result<Argument> read_argument(const Toml& node) {
    using Role = Argument::Role;
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[[arguments]]"));
    Argument argument;
    PURLIN_ASSIGN(argument.name, table.string("name"));
    if (!is_identifier(argument.name))
      return node.find("name")->complain(fmt::format("'{}' is no name", argument.name));
    PURLIN_ASSIGN(const std::string role, table.string("role"));
    const std::vector<std::string> roles = {"input", "output", "inout", "scalar", "scratch"};
    const auto found = std::find(roles.begin(), roles.end(), role);
    if (found == roles.end())
      return node.find("role")->complain(
          fmt::format("unknown role '{}'; there are {}", role, join(roles, ", ")));
    argument.role = static_cast<Role>(found - roles.begin());
    PURLIN_ASSIGN(const std::string dtype, table.string("dtype"));
    const auto known = dtype_from_name(dtype);
    if (!known)
      return node.find("dtype")->complain(fmt::format(
          "unknown dtype '{}'; there are f16, bf16, f8e4m3, f8e5m2, f32, f64, i8 to i64, u8 to u64",
          dtype));
    argument.dtype = *known;
    const Toml* shape = table.optional("shape");
    const Toml* value = table.optional("value");
    const Toml* fill = table.optional("fill");
    const Toml* layout = table.optional("layout");
    PURLIN_TRY(table.finish());
    const bool scalar = argument.role == Role::kScalar;
    if (scalar && value == nullptr)
      return node.complain(fmt::format("scalar '{}' needs value = \"…\"", argument.name));
    if (scalar && shape != nullptr)
      return shape->complain(fmt::format("scalar '{}' has no shape", argument.name));
    if (!scalar && shape == nullptr)
      return node.complain(
          fmt::format("buffer '{}' needs shape = [\"…\"], its extents", argument.name));
    if (!scalar && value != nullptr)
      return value->complain(fmt::format(
          "'value' is for scalars; to fill '{}' use fill = \"constant(0)\"", argument.name));
    if (fill != nullptr && argument.role != Role::kInput && argument.role != Role::kInOut)
      return fill->complain(
          fmt::format("'fill' is for role input and inout; '{}' is {}", argument.name, role));
    if (scalar) {
      PURLIN_ASSIGN(argument.value, to_expression(*value, "value"));
    } else {
      PURLIN_ASSIGN(argument.shape, to_expressions(*shape, "shape", 8));
    }
    if (fill != nullptr) PURLIN_TRY(read_fill(*fill, argument));
    if (layout != nullptr) PURLIN_TRY(read_layout(*layout, argument));
    return argument;
  }

  // A known word, so that a misspelt word does not create separate keys.
  static Status read_layout(const Toml& node, Argument& argument) {
    static const std::vector<std::string> words = {"row",   "column", "strided", "nchw", "nhwc",
                                                   "ncdhw", "ndhwc",  "kcrs",    "krsc"};
    if (argument.role == Argument::Role::kScalar)
      return node.complain(fmt::format("scalar '{}' has no layout", argument.name));
    const std::string text = node.string() == nullptr ? "" : *node.string();
    constexpr std::string_view kBlocked = "blocked:";
    const bool blocked = starts_with(text, kBlocked) &&
                         is_identifier(std::string_view(text).substr(kBlocked.size()));
    if (!blocked && std::find(words.begin(), words.end(), text) == words.end())
      return node.complain(fmt::format("layout of '{}' is none of {}, or blocked:NAME{}",
                                       argument.name, join(words, ", "), suggestion(text, words)));
    argument.layout = text;
    return Status::ok();
  }

  // "uniform(-1, 1)", "normal(0, 1)", "constant(3)", "iota".
  static Status read_fill(const Toml& node, Argument& argument) {
    constexpr const char* kForms = "uniform(low, high), normal(mean, sd), constant(c) or iota";
    if (node.string() == nullptr)
      return node.complain(fmt::format("fill must be a text: {}", kForms));
    const std::string_view text = trim(*node.string());
    const std::size_t open = text.find('(');
    const std::string_view kind = trim(text.substr(0, open));
    std::vector<double> numbers;
    bool good = true;
    if (open != std::string_view::npos) {
      good = ends_with(text, ")");
      const std::string inside(text.substr(open + 1, text.size() - open - 2));
      for (const std::string& part : split(good ? inside : "", ',')) {
        const auto number = parse_double(trim(part));
        good = good && number && std::isfinite(*number);
        numbers.push_back(number.value_or(0));
      }
    }
    using Fill = Argument::Fill;
    const auto is = [&](std::string_view name, std::size_t count) {
      return kind == name && numbers.size() == count;
    };
    if (is("uniform", 2)) {
      argument.fill = Fill::kUniform;
      good = good && numbers[0] <= numbers[1];
    } else if (is("normal", 2)) {
      argument.fill = Fill::kNormal;
      good = good && numbers[1] >= 0;
    } else if (is("constant", 1)) {
      argument.fill = Fill::kConstant;
    } else if (is("iota", 0)) {
      argument.fill = Fill::kIota;
    } else {
      good = false;
    }
    if (!good)
      return node.complain(fmt::format("fill '{}' is not one of {}", *node.string(), kForms));
    argument.fill_a = numbers.empty() ? 0 : numbers[0];
    argument.fill_b = numbers.size() < 2 ? 0 : numbers[1];
    return Status::ok();
  }

  Status read_reference(const Toml& node) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[reference]"));
    if (const Toml* config = table.optional("config")) {
      if (config->string() == nullptr || *config->string() != "default")
        return config->complain("'config' is \"default\": the reference is the default config");
      spec_.reference = default_config_reference(spec_);
      return table.finish();
    }
    Reference& reference = spec_.reference;
    PURLIN_ASSIGN(reference.entry, table.string("entry"));
    PURLIN_ASSIGN(reference.sources, read_sources(table, "reference"));
    for (const auto& [language, source] : spec_.sources)
      if (reference.sources.find(language) == reference.sources.end())
        return node.complain(fmt::format(
            "the kernel has a {0} source, so [reference.{0}] is needed to verify it", language));
    PURLIN_ASSIGN(const Toml* launch, table.required("launch"));
    PURLIN_ASSIGN(reference.launch, read_launch(*launch, "[reference.launch]"));
    PURLIN_ASSIGN(reference.arguments, table.strings_or_empty("arguments"));
    const Toml* listed = table.optional("arguments");
    if (listed == nullptr) reference.arguments = argument_names_;
    PURLIN_TRY(table.finish());
    const Toml& where = listed != nullptr ? *listed : node;
    for (const std::string& name : reference.arguments) {
      if (find_argument(name) == nullptr)
        return where.complain(fmt::format("the reference's argument '{}' is not in [[arguments]]{}",
                                          name, suggestion(name, argument_names_)));
      if (std::count(reference.arguments.begin(), reference.arguments.end(), name) > 1)
        return where.complain(fmt::format("the reference takes '{}' twice", name));
    }
    for (const Argument& argument : spec_.arguments)
      if (is_result(argument) && !in_reference(argument))
        return where.complain(fmt::format(
            "the reference does not take '{}', so it could not be verified", argument.name));
    return Status::ok();
  }

  bool in_reference(const Argument& argument) const {
    const auto& names = spec_.reference.arguments;
    return std::find(names.begin(), names.end(), argument.name) != names.end();
  }

  Status read_tolerance(const Toml& node) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[tolerance]"));
    PURLIN_ASSIGN(spec_.rtol, table.number_or("rtol", spec_.rtol));
    spec_.scaled_atol = table.node().find("atol") == nullptr && !spec_.library;
    PURLIN_ASSIGN(spec_.atol, table.number_or("atol", spec_.atol));
    if (!(spec_.rtol >= 0) || !(spec_.atol >= 0) || std::isinf(spec_.rtol + spec_.atol))
      return node.complain("rtol and atol must be finite and not negative");
    return table.finish();
  }

  Status read_work(const Toml& node) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[work]"));
    if (const Toml* flops = table.optional("flops")) {
      PURLIN_ASSIGN(spec_.flops, to_expression(*flops, "flops"));
    }
    if (const Toml* bytes = table.optional("bytes")) {
      PURLIN_ASSIGN(spec_.bytes, to_expression(*bytes, "bytes"));
    }
    return table.finish();
  }

  Status read_bucket(const Toml& node) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[bucket]"));
    for (const auto& [dimension, rule] : *table.node().table()) {
      if (spec_.problem.find(dimension) == nullptr)
        return rule.complain(fmt::format("[problem] has no dimension '{}'{}", dimension,
                                         suggestion(dimension, dimensions_)));
      const std::string text = rule.string() != nullptr ? *rule.string() : "";
      const bool multiple = starts_with(text, "multiple:") &&
                            parse_int(std::string_view(text).substr(9)).value_or(0) > 0;
      // cache/entry/bucket.h checks that the ranges join up.
      const bool ranges = starts_with(text, "range:1") &&
                          text.find_first_not_of("0123456789,-", 6) == std::string::npos;
      if (text != "exact" && text != "pow2" && !multiple && !ranges)
        return rule.complain(
            "a bucket is \"exact\", \"pow2\" or \"multiple:N\" with N > 0, or "
            "\"range:1-16,17-64,65-\"");
      spec_.bucket[dimension] = text;
    }
    return Status::ok();
  }

  Status read_measure(const Toml& node) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[measure]"));
    PURLIN_ASSIGN(const std::string inputs, table.string_or("inputs", "reuse"));
    if (inputs != "reuse" && inputs != "rotate")
      return table.node().find("inputs")->complain(
          fmt::format("inputs is \"reuse\" or \"rotate\", not '{}'", inputs));
    spec_.rotate_inputs = inputs == "rotate";
    return table.finish();
  }

  Status check(const SpecExpression& expression, bool with_parameters,
               std::string_view why_not = "", const std::vector<std::string>& further = {}) const {
    std::vector<std::string> known = dimensions_;
    known.insert(known.end(), further.begin(), further.end());
    if (with_parameters) known.insert(known.end(), parameters_.begin(), parameters_.end());
    known.insert(known.end(), std::begin(kDeviceFacts), std::end(kDeviceFacts));
    for (const std::string& name : expression.expression.names()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const bool parameter =
          std::find(parameters_.begin(), parameters_.end(), name) != parameters_.end();
      return error(Code::kInvalid, "{}: {} '{}' in '{}'{}", expression.where,
                   parameter ? "no use of parameter" : "unknown name", name,
                   expression.expression.text(),
                   parameter ? fmt::format(": {}", why_not) : suggestion(name, known));
    }
    return Status::ok();
  }

  Status check(const LaunchSpec& launch, bool with_parameters, std::string_view why_not) const {
    for (const SpecExpression& extent : launch.grid)
      PURLIN_TRY(check(extent, with_parameters, why_not));
    for (const SpecExpression& extent : launch.block)
      PURLIN_TRY(check(extent, with_parameters, why_not));
    if (!launch.dynamic_shared_bytes) return Status::ok();
    return check(*launch.dynamic_shared_bytes, with_parameters, why_not);
  }

  // Every expression uses only what has a value where it is evaluated.
  Status check_names() const {
    constexpr const char* kReference = "the reference runs once, without a config";
    constexpr const char* kBuffer =
        "buffers other than scratch are the same for all configs; use its largest";
    for (const SpecExpression& constraint : spec_.constraints) PURLIN_TRY(check(constraint, true));
    const std::vector<std::string> compiled = limit_facts();
    for (const SpecExpression& limit : spec_.limits) {
      PURLIN_TRY(check(limit, true, "", compiled));
      for (const std::string& fact : compiled)
        if (spec_.problem.find(fact) != nullptr ||
            std::find(parameters_.begin(), parameters_.end(), fact) != parameters_.end())
          return error(
              Code::kInvalid,
              "{}: in limits '{}' is what compiling or measuring tells; rename the {} '{}'",
              limit.where, fact, spec_.problem.find(fact) != nullptr ? "dimension" : "parameter",
              fact);
    }
    PURLIN_TRY(check(spec_.launch, true, ""));
    PURLIN_TRY(check(spec_.reference.launch, false, kReference));
    for (const Argument& argument : spec_.arguments) {
      // Scratch holds nothing between configs, so each may have its own (the parts of a split sum).
      const bool own = argument.role == Argument::Role::kScratch;
      for (const SpecExpression& extent : argument.shape) PURLIN_TRY(check(extent, own, kBuffer));
      if (argument.role == Argument::Role::kScalar)
        PURLIN_TRY(check(argument.value,
                         spec_.reference.is_default_config || !in_reference(argument), kReference));
    }
    if (spec_.flops) PURLIN_TRY(check(*spec_.flops, true));
    if (spec_.bytes) PURLIN_TRY(check(*spec_.bytes, true));
    return Status::ok();
  }

  const SourceReader& read_;
  KernelSpec spec_;
  std::vector<std::string> dimensions_, parameters_, argument_names_;
};

}  // namespace

Result<KernelSpec> parse_spec(std::string_view text, const std::string& path,
                              const SourceReader& read) {
  PURLIN_ASSIGN(const Toml document, Toml::parse(text, path));
  return SpecReader(path, read).read(document);
}

Result<KernelSpec> load_spec(const std::string& path, SpecUse use) {
  for (const char* source : {".cl", ".cu", ".cuh", ".py"})
    if (ends_with(path, source))
      return error(Code::kInvalid,
                   "'{}' is the source of a kernel, not its spec; `purlin init {}` writes a spec",
                   path, path);
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxSourceBytes));
  const SourceReader read = [](const std::string& source) {
    return read_file(source, kMaxSourceBytes);
  };
  // No TOML document begins with a brace.
  if (starts_with(trim(text), "{")) return parse_t1(text, path, use, read);
  return parse_spec(text, path, read);
}

}  // namespace purlin
