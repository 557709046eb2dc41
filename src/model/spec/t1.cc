// SPDX-License-Identifier: Apache-2.0
#include "model/spec/t1.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/replace.h"
#include "base/text.h"
#include "model/spec/default_reference.h"
#include "model/spec/includes.h"
#include "model/spec/python_list.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace purlin {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxT1Parameters = 256, kMaxConditions = 4096, kMaxT1Arguments = 256;
constexpr std::size_t kMaxT1Values = 65536;
constexpr std::array<const char*, 3> kProblem = {"problem_size_x", "problem_size_y",
                                                 "problem_size_z"};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class T1Reader {
 public:
  T1Reader(const std::string& path, SpecUse use, const SourceReader& read)
      : use_(use), read_(read) {
    spec_.file = path;
  }

  Result<KernelSpec> read(const Json& document) {
    if (!document.is_object()) return wrong("", "a T1 file is a JSON object");
    const Json& space = document["ConfigurationSpace"];
    if (!space.is_object())
      return wrong("", "no 'ConfigurationSpace'; this is no T1 file (nor a TOML spec)");
    const Json& kernel = document["KernelSpecification"];
    read_name(document, kernel);
    PURLIN_TRY(read_problem(kernel));
    PURLIN_TRY(read_parameters(space["TuningParameters"]));
    PURLIN_TRY(read_conditions(space["Conditions"]));
    if (use_ == SpecUse::kSpace) return std::move(spec_);
    if (!kernel.is_object()) return wrong("", "no 'KernelSpecification': there is nothing to run");
    PURLIN_TRY(
        check_members(kernel, "KernelSpecification",
                      {"Language", "CompilerOptions", "BenchmarkName", "KernelName", "KernelFile",
                       "GlobalSizeType", "LocalSize", "GlobalSize", "GridDivX", "GridDivY",
                       "GridDivZ", "ProblemSize", "SharedMemory", "Stream", "Misc", "Arguments"}));
    PURLIN_TRY(read_source(kernel));
    PURLIN_TRY(read_launch(kernel));
    PURLIN_TRY(read_arguments(kernel["Arguments"]));
    spec_.reference = default_config_reference(spec_);
    return std::move(spec_);
  }

 private:
  Status wrong(std::string_view member, std::string_view what) const {
    return error(Code::kInvalid, "{}: {}{}{}", spec_.file, member, member.empty() ? "" : ": ",
                 what);
  }

  Status check_members(const Json& object, const std::string& where,
                       const std::vector<std::string>& known) const {
    for (const Json::Member& member : object.members()) {
      if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
      const std::string near = nearest(member.key, known);
      return wrong(where, fmt::format("Purlin has nothing for '{}'{}", member.key,
                                      near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
    return Status::ok();
  }

  // A label of the file's name for the kernel.
  void read_name(const Json& document, const Json& kernel) {
    std::string name = document["General"]["BenchmarkName"].as_string();
    if (name.empty()) name = kernel["BenchmarkName"].as_string();
    if (name.empty()) name = kernel["KernelName"].as_string();
    name.resize(std::min<std::size_t>(name.size(), 100));
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-') c = '_';
    spec_.name = spec_.op = name.empty() ? "t1" : name;
    spec_.entry = kernel["KernelName"].as_string();
  }

  Status read_problem(const Json& kernel) {
    const Json& size = kernel["ProblemSize"];
    if (size.is_null()) return Status::ok();
    const Json::Array one = {size};
    const Json::Array& sizes = size.is_array() ? size.items() : one;
    if (sizes.size() > kProblem.size())
      return wrong("ProblemSize", "at most three dimensions are known");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!sizes[i].is_int() || sizes[i].as_int() < 1)
        return wrong("ProblemSize", "only positive integers are known here");
      spec_.problem.set(kProblem[i], sizes[i].as_int());
    }
    return Status::ok();
  }

  Status read_parameters(const Json& parameters) {
    if (!parameters.is_array() || parameters.size() == 0 || parameters.size() > kMaxT1Parameters)
      return wrong("TuningParameters", fmt::format("must be 1 to {} parameters", kMaxT1Parameters));
    for (const Json& each : parameters.items()) {
      Parameter parameter;
      parameter.name = each["Name"].as_string();
      const std::string where = fmt::format("parameter '{}'", parameter.name);
      const Result<Expression> name = Expression::parse(parameter.name);
      if (!name.is_ok() || name->names() != std::vector<std::string>{parameter.name})
        return wrong(where, "the name must be an identifier and no word of the expressions");
      if (find_parameter(parameter.name) != nullptr ||
          spec_.problem.find(parameter.name) != nullptr)
        return wrong(where, "the name is taken");
      PURLIN_TRY(check_members(each, where, {"Name", "Type", "Values", "Default"}));
      PURLIN_TRY(read_values(each, where, parameter));
      spec_.parameters.push_back(std::move(parameter));
    }
    return Status::ok();
  }

  Status read_values(const Json& each, const std::string& where, Parameter& parameter) const {
    std::vector<Value> values;
    if (each["Values"].is_string()) {
      Result<std::vector<Value>> parsed =
          parse_python_list(each["Values"].as_string(), kMaxT1Values);
      if (!parsed.is_ok()) return wrong(where + ": Values", parsed.status().message());
      values = std::move(parsed).value();
    } else {
      for (const Json& item : each["Values"].items()) {
        const Result<Value> value = value_from_json(item);
        if (!value.is_ok()) return wrong(where + ": Values", value.status().message());
        values.push_back(*value);
      }
    }
    for (Value& value : values) {
      const auto& known = parameter.values;
      if (std::find(known.begin(), known.end(), value) == known.end())
        parameter.values.push_back(std::move(value));
    }
    if (parameter.values.empty() || parameter.values.size() > kMaxT1Values)
      return wrong(where, fmt::format("must have 1 to {} values", kMaxT1Values));
    // Published files have defaults that are lists of one, and such as are none of the values;
    // these are no better than none.
    const Json& listed = each["Default"];
    const Json& fallback = listed.is_array() && listed.size() == 1 ? listed.items()[0] : listed;
    if (const Result<Value> preset = value_from_json(fallback); preset.is_ok())
      if (std::find(parameter.values.begin(), parameter.values.end(), *preset) !=
          parameter.values.end())
        parameter.preset = *preset;
    return Status::ok();
  }

  Status read_conditions(const Json& conditions) {
    if (conditions.is_null()) return Status::ok();
    if (!conditions.is_array() || conditions.size() > kMaxConditions)
      return wrong("Conditions", fmt::format("must be a list of at most {}", kMaxConditions));
    for (std::size_t i = 0; i < conditions.size(); ++i) {
      const std::string where = fmt::format("Conditions[{}]", i);
      PURLIN_ASSIGN(SpecExpression condition,
                    to_expression(conditions.items()[i]["Expression"], where, true));
      spec_.constraints.push_back(std::move(condition));
    }
    return Status::ok();
  }

  const Parameter* find_parameter(std::string_view name) const {
    for (const Parameter& parameter : spec_.parameters)
      if (parameter.name == name) return &parameter;
    return nullptr;
  }

  // "ProblemSize[0]" is problem_size_x, and "max(filter_width)" the largest of its values.
  std::string translate(std::string_view text) const {
    std::string out(text);
    for (std::size_t i = 0; i < kProblem.size(); ++i)
      out = replace_all(out, fmt::format("ProblemSize[{}]", i), kProblem[i]);
    for (const Parameter& parameter : spec_.parameters) {
      const auto less = [](const Value& a, const Value& b) {
        return to_double(a).value_or(0) < to_double(b).value_or(0);
      };
      const auto [least, most] =
          std::minmax_element(parameter.values.begin(), parameter.values.end(), less);
      out = replace_all(out, "max(" + parameter.name + ")", to_text(*most));
      out = replace_all(out, "min(" + parameter.name + ")", to_text(*least));
    }
    return out;
  }

  Result<SpecExpression> to_expression(const Json& json, const std::string& where,
                                       bool with_parameters) const {
    if (!json.is_string() && !json.is_number())
      return wrong(where, "must be an expression in quotes or a number");
    const std::string text = json.is_string() ? translate(json.as_string()) : json.dump();
    const Result<Expression> parsed = Expression::parse(text);
    if (!parsed.is_ok())
      return wrong(where, fmt::format("'{}': {}", text, parsed.status().message()));
    for (const std::string& name : parsed->names()) {
      if (spec_.problem.find(name) != nullptr) continue;
      const bool parameter = find_parameter(name) != nullptr;
      if (parameter && with_parameters) continue;
      return wrong(where, parameter ? fmt::format("'{}' uses parameter '{}', but buffers are the "
                                                  "same for all configs; write max({})",
                                                  text, name, name)
                                    : fmt::format("'{}' uses the unknown name '{}'", text, name));
    }
    return SpecExpression{*parsed, fmt::format("{}: {}", spec_.file, where)};
  }

  Status read_source(const Json& kernel) {
    const std::string language = lower(kernel["Language"].as_string());
    if (language != "cuda" && language != "opencl")
      return wrong("Language", fmt::format("'{}' is neither CUDA nor OpenCL, which Purlin runs",
                                           kernel["Language"].as_string()));
    if (spec_.entry.empty()) return wrong("KernelName", "is missing");
    SourceText source;
    source.file = kernel["KernelFile"].as_string();
    if (source.file.empty()) return wrong("KernelFile", "is missing");
    for (const Json& option : kernel["CompilerOptions"].items())
      source.options.push_back(option.as_string());
    const std::string path = join_path(parent_path(spec_.file), source.file);
    Result<std::string> text = read_(path);
    if (!text.is_ok()) return text.status().with_context(spec_.file + ": KernelFile");
    source.text = std::move(text).value();
    Result<std::string> hash = headers_hash(
        source.text, parent_path(path), include_folders(source.options),
        [this](const std::string& header) -> std::optional<std::string> {
          Result<std::string> found = read_(header);
          return found.is_ok() ? std::optional(std::move(found).value()) : std::nullopt;
        });
    if (!hash.is_ok()) return hash.status().with_context(spec_.file + ": KernelFile");
    source.headers_hash = std::move(hash).value();
    spec_.sources[language] = std::move(source);
    return Status::ok();
  }

  Status read_launch(const Json& kernel) {
    if (!kernel["Stream"].is_null()) return wrong("Stream", "Purlin runs kernels in one stream");
    const std::string type = lower(kernel["GlobalSizeType"].as_string());
    constexpr std::array<const char*, 3> kAxes = {"X", "Y", "Z"};
    for (std::size_t i = 0; i < 3; ++i) {
      const Json* local = kernel["LocalSize"].find(kAxes[i]);
      PURLIN_ASSIGN(SpecExpression block,
                    to_expression(local != nullptr ? *local : Json("1"),
                                  fmt::format("LocalSize.{}", kAxes[i]), true));
      PURLIN_ASSIGN(std::string grid, grid_of(kernel, i, type, block.expression));
      PURLIN_ASSIGN(SpecExpression extent,
                    to_expression(Json(grid), fmt::format("GlobalSize.{}", kAxes[i]), true));
      spec_.launch.block.push_back(std::move(block));
      spec_.launch.grid.push_back(std::move(extent));
    }
    const Json& shared = kernel["SharedMemory"];
    if (shared.is_null() || (shared.is_int() && shared.as_int() == 0)) return Status::ok();
    PURLIN_ASSIGN(spec_.launch.dynamic_shared_bytes, to_expression(shared, "SharedMemory", true));
    return Status::ok();
  }

  // In blocks. Divisors of the problem size come first, as in Kernel Tuner: published files that
  // have both leave a global size of another benchmark behind.
  Result<std::string> grid_of(const Json& kernel, std::size_t axis, const std::string& type,
                              const Expression& block) const {
    const std::string letter(1, "XYZ"[axis]);
    const Json& divisors = kernel["GridDiv" + letter];
    if (divisors.is_array()) {
      if (spec_.problem.find(kProblem[axis]) == nullptr)
        return wrong("GridDiv" + letter, "ProblemSize has no such dimension to divide");
      std::string product;
      for (const Json& divisor : divisors.items())
        product += (product.empty() ? "(" : " * (") +
                   (divisor.is_string() ? divisor.as_string() : divisor.dump()) + ")";
      return fmt::format("ceil_div({}, {})", kProblem[axis], product.empty() ? "1" : product);
    }
    const Json& size = kernel["GlobalSize"][letter];
    if (size.is_null()) return std::string("1");
    const std::string text = size.is_string() ? size.as_string() : size.dump();
    if (type == "opencl") return fmt::format("ceil_div({}, {})", text, block.text());
    if (type == "cuda") return text;
    return wrong("GlobalSizeType", "must be CUDA (in blocks) or OpenCL (in threads)");
  }

  Status read_arguments(const Json& arguments) {
    if (!arguments.is_array() || arguments.size() == 0 || arguments.size() > kMaxT1Arguments)
      return wrong("Arguments", fmt::format("must be 1 to {}", kMaxT1Arguments));
    bool writes = false;
    for (const Json& each : arguments.items()) {
      PURLIN_ASSIGN(Argument argument, read_argument(each));
      writes |= argument.role == Argument::Role::kOutput || argument.role == Argument::Role::kInOut;
      for (const Argument& other : spec_.arguments)
        if (other.name == argument.name)
          return wrong("Arguments", fmt::format("'{}' is there twice", argument.name));
      spec_.arguments.push_back(std::move(argument));
    }
    if (writes) return Status::ok();
    return wrong("Arguments", "none is written; there would be nothing to verify");
  }

  Result<Argument> read_argument(const Json& json) const {
    Argument argument;
    argument.name = json["Name"].as_string();
    const std::string where = fmt::format("argument '{}'", argument.name);
    PURLIN_TRY(check_members(json, where,
                             {"Name", "Type", "MemoryType", "MemType", "AccessType", "FillType",
                              "FillValue", "Size", "Output"}));
    if (argument.name.empty()) return wrong("Arguments", "one has no Name");
    if (const std::string& memory = json["MemType"].as_string();
        !memory.empty() && lower(memory) != "global")
      return wrong(where, fmt::format("MemType '{}': Purlin passes buffers in global memory only; "
                                      "make it a kernel argument",
                                      memory));
    const auto dtype = dtype_from_name(lower(json["Type"].as_string()));
    if (!dtype) return wrong(where, fmt::format("unknown Type '{}'", json["Type"].as_string()));
    argument.dtype = *dtype;
    const std::string kind = lower(json["MemoryType"].as_string());
    const Json& fill = json["FillValue"];
    if (kind == "scalar") {
      argument.role = Argument::Role::kScalar;
      PURLIN_ASSIGN(argument.value, to_expression(fill, where + ": FillValue", false));
      return argument;
    }
    if (kind != "vector")
      return wrong(where, fmt::format("MemoryType '{}' is neither Vector nor Scalar", kind));
    PURLIN_ASSIGN(SpecExpression size, to_expression(json["Size"], where + ": Size", false));
    argument.shape.push_back(std::move(size));
    const std::string access = lower(json["AccessType"].as_string());
    if (access == "writeonly") {
      argument.role = Argument::Role::kOutput;
      return argument;
    }
    if (access != "readonly" && access != "readwrite")
      return wrong(where, "AccessType must be ReadOnly, WriteOnly or ReadWrite");
    argument.role = access == "readonly" ? Argument::Role::kInput : Argument::Role::kInOut;
    const std::string how = lower(json["FillType"].as_string());
    if (how == "random") {
      argument.fill = Argument::Fill::kUniform;
      argument.fill_a = std::min(0.0, fill.as_double(1));
      argument.fill_b = std::max(0.0, fill.as_double(1));
    } else if (how == "constant" || how.empty()) {
      argument.fill = Argument::Fill::kConstant;
      argument.fill_a = fill.as_double(0);
    } else {
      return wrong(where, fmt::format("FillType '{}': Purlin fills with Constant or Random",
                                      json["FillType"].as_string()));
    }
    return argument;
  }

  SpecUse use_;
  const SourceReader& read_;
  KernelSpec spec_;
};

}  // namespace

Result<KernelSpec> parse_t1(std::string_view json, const std::string& path, SpecUse use,
                            const SourceReader& read) {
  Json::Limits limits;
  limits.max_bytes = kMaxBytes;
  const Result<Json> document = Json::parse(json, limits);
  if (!document.is_ok()) return document.status().with_context(path);
  return T1Reader(path, use, read).read(*document);
}

}  // namespace purlin
