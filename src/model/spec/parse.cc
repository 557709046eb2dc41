// SPDX-License-Identifier: Apache-2.0
// TOML to KernelSpec. Each read_* function takes one table of the file; check_names then makes sure
// that every expression uses only names that exist where it stands.
#include "base/files.h"
#include "base/text.h"
#include "base/toml.h"
#include "model/expression/node.h"
#include "model/expression/parameter.h"
#include "model/spec/arguments.h"
#include "model/spec/default_reference.h"
#include "model/spec/library.h"
#include "model/spec/names.h"
#include "model/spec/nodes.h"
#include "model/spec/parameters.h"
#include "model/spec/sources.h"
#include "model/spec/spec.h"
#include "model/spec/t1.h"

#include <algorithm>
#include <cmath>

namespace purlin {
namespace {

using namespace spec_nodes;

constexpr std::size_t kMaxParameters = 256;
constexpr std::size_t kMaxArguments = 256;
constexpr std::size_t kMaxConstraints = 4096;
constexpr std::size_t kMaxSourceBytes = std::size_t{16} << 20;

class SpecReader {
 public:
  SpecReader(const std::string& path, const SourceReader& read) : read_(read) { spec_.file = path; }

  Result<KernelSpec> read(const Toml& document) {
    PURLIN_ASSIGN(TomlTable top, TomlTable::of(document, "the spec"));
    PURLIN_TRY(read_head(top));
    if (const Toml* node = top.optional("problem")) PURLIN_TRY(read_problem(*node));
    if (const Toml* node = top.optional("library")) return read_library(top, *node);
    if (const Toml* node = top.optional("command")) return read_commands(top, *node);
    PURLIN_ASSIGN(const Toml* kernel, top.required("kernel"));
    PURLIN_TRY(read_kernel(*kernel));
    PURLIN_TRY(read_space(top));
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
    PURLIN_TRY(check_names(spec_));
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
    inner.spec_.scaled_atol = inner.spec_.default_rtol = false;
    if (const Toml* tolerance = top.optional("tolerance")) {
      PURLIN_TRY(inner.read_tolerance(*tolerance));
      inner.spec_.library_tolerance = false;
    }
    if (const Toml* bucket = top.optional("bucket")) PURLIN_TRY(inner.read_bucket(*bucket));
    inner.spec_.rotate_inputs = true;  // weights come from memory in a model
    if (const Toml* measure = top.optional("measure")) PURLIN_TRY(inner.read_measure(*measure));
    PURLIN_TRY(top.finish());
    PURLIN_TRY(check_names(inner.spec_));
    return std::move(inner.spec_);
  }

  // Commands in place of a kernel.
  Result<KernelSpec> read_commands(TomlTable& top, const Toml& node) {
    PURLIN_TRY(read_space(top));
    std::vector<std::string> names = parameters_;
    names.insert(names.end(), dimensions_.begin(), dimensions_.end());
    for (const std::string_view own : {kSpecFolder, kOutputFile})
      if (std::find(names.begin(), names.end(), own) != names.end())
        return node.complain(fmt::format(
            "'{}' has a special meaning in [command]; rename the parameter or dimension", own));
    PURLIN_ASSIGN(spec_.command, read_command(node, names, spec_.file, read_));
    // Configs are compared with the default, unless a digest is given or a command judges them.
    spec_.reference.is_default_config =
        spec_.command->check.empty() && spec_.command->expect.empty();
    if (const Toml* work = top.optional("work")) PURLIN_TRY(read_work(*work));
    if (const Toml* bucket = top.optional("bucket")) PURLIN_TRY(read_bucket(*bucket));
    PURLIN_TRY(top.finish());
    PURLIN_TRY(check_names(spec_));
    return std::move(spec_);
  }

  Status read_space(TomlTable& top) {
    if (const Toml* node = top.optional("parameters")) PURLIN_TRY(read_parameters(*node));
    // An empty list says the same as none: generated specs have one.
    if (const Toml* node = top.optional("constraints");
        node != nullptr && (node->array() == nullptr || !node->array()->empty()))
      PURLIN_TRY(read_constraints(*node));
    return add_conditions();
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
    PURLIN_ASSIGN(spec_.sources, read_sources(table, "kernel", spec_.file, read_));
    return table.finish();
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
      for (const auto& [language, source] : spec_.sources)
        if (argument.tensor_map && language != "cuda")
          return item.find("tensor_map")
              ->complain(fmt::format("a tensor map is for CUDA alone; put [kernel.{}] into a spec "
                                     "without one",
                                     language));
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
    PURLIN_ASSIGN(reference.sources, read_sources(table, "reference", spec_.file, read_));
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
      if (is_result(argument) && !in_reference(spec_, argument))
        return where.complain(fmt::format(
            "the reference does not take '{}', so it could not be verified", argument.name));
    return Status::ok();
  }

  Status read_tolerance(const Toml& node) {
    PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[tolerance]"));
    spec_.default_rtol = table.node().find("rtol") == nullptr && !spec_.library;
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
