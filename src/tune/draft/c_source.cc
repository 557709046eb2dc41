// SPDX-License-Identifier: Apache-2.0
// Kernels of OpenCL C and CUDA C++.
#include "base/regex.h"
#include "base/text.h"
#include "tune/draft/kernel_source.h"
#include "tune/draft/source_text.h"

#include <algorithm>
#include <map>
#include <set>

namespace purlin::tune {
namespace {

using namespace source_text;

constexpr std::string_view kTemplate = "a template parameter";

struct ScalarType {
  std::string dtype;
  int width = 1;
};

const std::map<std::string, std::string>& c_dtypes() {
  static const std::map<std::string, std::string> types = {{"char", "i8"},
                                                           {"uchar", "u8"},
                                                           {"short", "i16"},
                                                           {"ushort", "u16"},
                                                           {"int", "i32"},
                                                           {"uint", "u32"},
                                                           {"long", "i64"},
                                                           {"ulong", "u64"},
                                                           {"size_t", "u64"},
                                                           {"ptrdiff_t", "i64"},
                                                           {"int8_t", "i8"},
                                                           {"uint8_t", "u8"},
                                                           {"int16_t", "i16"},
                                                           {"uint16_t", "u16"},
                                                           {"int32_t", "i32"},
                                                           {"uint32_t", "u32"},
                                                           {"int64_t", "i64"},
                                                           {"uint64_t", "u64"},
                                                           {"half", "f16"},
                                                           {"__half", "f16"},
                                                           {"half_t", "f16"},
                                                           {"float", "f32"},
                                                           {"double", "f64"},
                                                           {"bool", "u8"},
                                                           {"__nv_bfloat16", "bf16"},
                                                           {"nv_bfloat16", "bf16"},
                                                           {"bfloat16", "bf16"},
                                                           {"__bfloat16", "bf16"},
                                                           {"__nv_fp8_e4m3", "f8e4m3"},
                                                           {"__nv_fp8_e5m2", "f8e5m2"}};
  return types;
}

// "float4", "__half2", "uchar16".
ScalarType scalar_type(const std::string& word) {
  const auto& types = c_dtypes();
  if (const auto known = types.find(word); known != types.end()) return {known->second, 1};
  std::size_t digits = word.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(word[digits - 1])) != 0) --digits;
  const auto known = types.find(word.substr(0, digits));
  const std::optional<std::int64_t> width = whole_number(word.substr(digits));
  const bool vector =
      width && (*width == 2 || *width == 3 || *width == 4 || *width == 8 || *width == 16);
  if (known == types.end() || !vector) return {};
  return {known->second, static_cast<int>(*width == 3 ? 4 : *width)};
}

// Constants and names of types that lines before the kernels define.
struct Preamble {
  std::vector<SourceParameter> macros;  // that -D may set
  std::vector<std::string> fixed;
  std::set<std::string> defined;            // every macro
  std::map<std::string, ScalarType> types;  // macros and typedefs of element types
};

class CReader {
 public:
  CReader(std::string_view text, bool cuda)
      : cuda_(cuda), clean_(without_comments(text, false)), code_(clean_) {
    read_preprocessor();
    read_aliases();
    read_constants();
  }

  std::vector<KernelSource> read() {
    std::map<std::size_t, KernelSource> found;  // by place
    const std::vector<std::string> marks = cuda_ ? std::vector<std::string>{"__global__"}
                                                 : std::vector<std::string>{"__kernel", "kernel"};
    for (const std::string& mark : marks)
      for (std::size_t at = 0; (at = find_word(code_, mark, at)) != code_.npos; at += mark.size())
        if (std::optional<KernelSource> kernel = read_kernel(at, at + mark.size()))
          found.emplace(at, std::move(*kernel));
    std::vector<KernelSource> kernels;
    for (auto& [place, kernel] : found) kernels.push_back(std::move(kernel));
    // The functions that the only kernel calls are its own.
    if (kernels.size() == 1)
      for (SourceParameter& one : kernels.front().parameters) one.elsewhere = false;
    return kernels;
  }

 private:
  // Directives become blanks in code_.
  void read_preprocessor() {
    std::set<std::string> guarded;
    static const Regex kGuard(R"(#\s*(?:ifndef|if\s+!\s*defined)\s*\(?\s*(\w+)\s*\)?\s*)");
    // A macro with arguments has its parenthesis right after the name.
    static const Regex kDefine(R"(#\s*define\s+(\w+)([^\w(].*)?)");
    for (std::size_t at = 0; at < clean_.size();) {
      std::size_t end = std::min(clean_.find('\n', at), clean_.size());
      const std::string first(trim(clean_.substr(at, end - at)));
      const bool directive = starts_with(first, "#");
      while (directive && end > at && clean_[end - 1] == '\\' && end < clean_.size())
        end = std::min(clean_.find('\n', end + 1), clean_.size());
      const std::string line(trim(clean_.substr(at, end - at)));
      if (directive) {
        std::fill(code_.begin() + static_cast<std::ptrdiff_t>(at),
                  code_.begin() + static_cast<std::ptrdiff_t>(end), ' ');
        Regex::Groups match;
        if (kGuard.matches(line, &match)) guarded.emplace(match[1]);
        if (kDefine.matches(line, &match)) {
          const std::string name(match[1]);
          define(name, std::string(trim(match[2])), guarded.count(name) > 0);
        }
        directives_ += line + "\n";
      }
      at = end + 1;
    }
  }

  void define(const std::string& name, const std::string& value, bool guarded) {
    preamble_.defined.insert(name);
    if (const ScalarType type = scalar_type(value); !type.dtype.empty()) {
      preamble_.types[name] = type;
    } else if (const std::optional<std::int64_t> number = whole_number(value)) {
      if (guarded)
        preamble_.macros.push_back({name, number, {}, "a macro that -D may set"});
      else
        preamble_.fixed.push_back(name);
    }
  }

  void read_aliases() {
    static const Regex kAlias(
        R"((?:typedef\s+(\w+)\s+(\w+)\s*;)|(?:using\s+(\w+)\s*=\s*(\w+)\s*;))");
    kAlias.each(code_, [&](const Regex::Groups& match) {
      const bool by_typedef = match[1].data() != nullptr;
      const ScalarType type = type_of(std::string(match[by_typedef ? 1 : 4]));
      if (!type.dtype.empty()) preamble_.types[std::string(match[by_typedef ? 2 : 3])] = type;
    });
  }

  void read_constants() {
    static const Regex kConstant(
        R"((?:constexpr|__constant|const)\s+(?:static\s+)?(?:unsigned\s+)?(?:int|uint|unsigned|size_t|auto|long)\s+([A-Za-z_]\w*)\s*=\s*(\d+)\w*\s*;)");
    kConstant.each(code_,
                   [&](const Regex::Groups& match) { preamble_.fixed.emplace_back(match[1]); });
  }

  ScalarType type_of(const std::string& word) const {
    if (const auto known = preamble_.types.find(word); known != preamble_.types.end())
      return known->second;
    return scalar_type(word);
  }

  // From after the mark: attributes, the return type, the name, the arguments, the body.
  std::optional<KernelSource> read_kernel(std::size_t mark, std::size_t at) const {
    KernelSource kernel;
    kernel.language = cuda_ ? "cuda" : "opencl";
    std::size_t open = code_.npos;
    for (std::size_t i = at; i < code_.size() && code_[i] != ';' && code_[i] != '{';) {
      if (!is_word(code_[i])) {
        ++i;
        continue;
      }
      std::size_t end = i;
      while (end < code_.size() && is_word(code_[end])) ++end;
      const std::string word = code_.substr(i, end - i);
      const std::size_t next = skip_blanks(code_, end);
      i = end;
      if (next >= code_.size() || code_[next] != '(') continue;
      const std::size_t close = closing(code_, next);
      if (close == code_.npos) return std::nullopt;
      if (word == "__attribute__" || word == "__launch_bounds__" || word == "__cluster_dims__") {
        read_attribute(code_.substr(next, close - next), kernel);
        i = close + 1;
        continue;
      }
      kernel.name = word;
      open = next;
      break;
    }
    if (open == code_.npos) return std::nullopt;
    const std::size_t close = closing(code_, open);
    std::size_t body = skip_blanks(code_, close + 1);
    while (starts_with(std::string_view(code_).substr(std::min(body, code_.size())),
                       "__attribute__")) {
      const std::size_t attribute = code_.find('(', body);
      read_attribute(code_.substr(attribute, closing(code_, attribute) - attribute), kernel);
      body = skip_blanks(code_, closing(code_, attribute) + 1);
    }
    if (body >= code_.size() || code_[body] != '{') return std::nullopt;  // a declaration
    const std::size_t end = std::min(closing(code_, body), code_.size());
    const std::string text = code_.substr(body, end - body);

    std::map<std::string, ScalarType> bound;
    kernel.entry = spaces_before(mark) + kernel.name + template_arguments(mark, kernel, bound);
    for (const std::string& item : list_items(code_.substr(open + 1, close - open - 1), true))
      if (item != "void") kernel.arguments.push_back(argument(item, bound));
    for (SourceArgument& one : kernel.arguments)
      if (one.pointer) see_uses(text, one);
    read_body(text, kernel);
    return kernel;
  }

  static void read_attribute(const std::string& text, KernelSource& kernel) {
    static const Regex kSize(R"(reqd_work_group_size\s*\(([^()]*)\))");
    Regex::Groups match;
    if (kSize.search(text, &match)) kernel.required_block = list_items(std::string(match[1]));
  }

  // "ns::inner::" of the namespaces around a place.
  std::string spaces_before(std::size_t place) const {
    if (!cuda_) return "";
    static const Regex kNamespace(R"(namespace\s+([\w:]+)\s*$)");
    std::vector<std::string> open;
    std::size_t statement = 0;
    for (std::size_t i = 0; i < place; ++i) {
      if (code_[i] == '{') {
        Regex::Groups match;
        const std::string_view before = std::string_view(code_).substr(statement, i - statement);
        open.push_back(kNamespace.search(before, &match) ? std::string(match[1]) + "::" : "");
      }
      if (code_[i] == '}' && !open.empty()) open.pop_back();
      if (code_[i] == '{' || code_[i] == '}' || code_[i] == ';') statement = i + 1;
    }
    return join(open, "");
  }

  // "<float, BM>": types are chosen, numbers become parameters.
  std::string template_arguments(std::size_t mark, KernelSource& kernel,
                                 std::map<std::string, ScalarType>& bound) const {
    const std::size_t statement = code_.find_last_of(";{}", mark);
    const std::size_t begin = statement == code_.npos ? 0 : statement + 1;
    const std::size_t at = find_word(std::string_view(code_).substr(0, mark), "template", begin);
    if (at == code_.npos) return "";
    const std::size_t open = code_.find('<', at), close = closing(code_, open);
    if (close == code_.npos || close > mark) return "";
    std::vector<std::string> given;
    for (const std::string& item : list_items(code_.substr(open + 1, close - open - 1), true)) {
      const std::size_t equals = item.find('=');
      const std::vector<std::string> all = words(item.substr(0, equals));
      if (all.size() < 2) return "";
      const std::string& name = all.back();
      const std::string preset =
          equals == item.npos ? "" : std::string(trim(item.substr(equals + 1)));
      if (all.front() == "typename" || all.front() == "class") {
        bound[name] = type_of(preset).dtype.empty() ? ScalarType{"f32", 1} : type_of(preset);
        given.push_back(preset.empty() ? "float" : preset);
      } else {
        kernel.parameters.push_back({name, whole_number(preset), {}, std::string(kTemplate)});
        given.push_back(name);
      }
    }
    return "<" + join(given, ", ") + ">";
  }

  SourceArgument argument(const std::string& text,
                          const std::map<std::string, ScalarType>& bound) const {
    static const std::set<std::string> kQualifiers = {
        "volatile",     "restrict",   "__restrict__",      "__restrict", "__global",    "global",
        "__constant",   "constant",   "__private",         "private",    "__read_only", "read_only",
        "__write_only", "write_only", "__grid_constant__", "struct",     "signed",      "std"};
    SourceArgument one;
    one.type = text;
    one.pointer = text.find('*') != text.npos || text.find('[') != text.npos;
    std::vector<std::string> all = words(text.substr(0, text.find_first_of("=[")));
    if (all.empty()) return one;
    one.name = all.back();
    all.pop_back();
    bool constant = false, is_unsigned = false;
    std::vector<std::string> type;
    for (const std::string& word : all) {
      constant |= word == "const" || word == "__constant" || word == "constant";
      one.local |= word == "__local" || word == "local";
      is_unsigned |= word == "unsigned";
      if (word != "const" && word != "unsigned" && word != "__local" && word != "local" &&
          kQualifiers.count(word) == 0)
        type.push_back(word);
    }
    while (type.size() > 1 && (type.back() == "int" || type.back() == "long")) type.pop_back();
    const std::string word = type.empty() ? "int" : type.back();
    const auto parameter = bound.find(word);
    const ScalarType found = parameter != bound.end() ? parameter->second : type_of(word);
    one.dtype = found.dtype;
    one.width = found.width;
    if (is_unsigned && starts_with(one.dtype, "i")) one.dtype[0] = 'u';
    if (constant && one.pointer) one.read = true;
    return one;
  }

  // How a kernel uses a buffer. One that is given to an unknown function may be read and written.
  static void see_uses(const std::string& body, SourceArgument& one) {
    if (one.read) return;  // const
    for (std::size_t at = 0; (at = find_word(body, one.name, at)) != body.npos;) {
      const std::size_t end = at + one.name.size();
      std::size_t next = skip_blanks(body, end);
      const std::string before(trim(
          std::string_view(body).substr(at > 60 ? at - 60 : 0, std::min<std::size_t>(at, 60))));
      at = end;
      if (next < body.size() && body[next] == '[') {
        const std::size_t close = closing(body, next);
        if (close == body.npos) return;
        next = skip_blanks(body, close + 1);
        if (ends_with(before, "&")) {
          one.read = one.written = true;
          continue;
        }
        see_operator(std::string_view(body).substr(next), one);
      } else if (ends_with(before, "*") && next < body.size() && body[next] == '=') {
        see_operator(std::string_view(body).substr(next), one);
      } else {
        const std::string name = function_around(body, at - one.name.size());
        one.written |= !starts_with(name, "vload");
        one.read |= !starts_with(name, "vstore");
      }
    }
  }

  // Of the innermost call in which a place is an argument.
  static std::string function_around(const std::string& body, std::size_t place) {
    int depth = 0;
    for (std::size_t i = place; i-- > 0 && body[i] != ';' && body[i] != '{';) {
      if (body[i] == ')') ++depth;
      if (body[i] == '(' && depth-- == 0) {
        const std::vector<std::string> before =
            words(body.substr(i > 60 ? i - 60 : 0, std::min<std::size_t>(i, 60)));
        return before.empty() ? "" : before.back();
      }
    }
    return "";
  }

  static void see_operator(std::string_view rest, SourceArgument& one) {
    // A member of a vector: out[i].x = …
    if (starts_with(rest, ".")) {
      std::size_t i = 1;
      while (i < rest.size() && is_word(rest[i])) ++i;
      rest.remove_prefix(std::min(skip_blanks(rest, i), rest.size()));
    }
    const bool equals = starts_with(rest, "=") && !starts_with(rest, "==");
    const bool compound = rest.size() > 1 && rest[1] == '=' &&
                          std::string_view("+-*/%|&^").find(rest[0]) != std::string_view::npos;
    const bool counts = starts_with(rest, "++") || starts_with(rest, "--");
    one.written |= equals || compound || counts;
    one.read |= !equals;
  }

  void read_body(const std::string& body, KernelSource& kernel) const {
    kernel.shares_memory = body.find("__shared__") != body.npos || has_word(body, "__local") ||
                           has_word(body, "local") || body.find("barrier") != body.npos ||
                           body.find("__syncthreads") != body.npos;
    for (const SourceArgument& one : kernel.arguments) kernel.shares_memory |= one.local;
    std::vector<SourceParameter> all = preamble_.macros;
    all.insert(all.end(), kernel.parameters.begin(), kernel.parameters.end());
    kernel.parameters = std::move(all);
    add_undefined(kernel);
    const std::string own = body + " " + join(kernel.required_block, " ");
    for (SourceParameter& one : kernel.parameters)
      one.elsewhere = one.origin != kTemplate && !has_word(own, one.name);
    kernel.fixed = preamble_.fixed;
    read_axes(body, kernel);
  }

  // Names in capitals that nothing in the file defines: it does not compile unless -D does.
  void add_undefined(KernelSource& kernel) const {
    static const Regex kCapital("[A-Z][A-Z0-9_]+");
    static const std::set<std::string> kBuiltin = {
        "NULL", "INFINITY", "NAN", "MAXFLOAT", "HUGE_VALF", "HUGE_VAL", "TRUE", "FALSE", "EOF"};
    std::set<std::string> known = preamble_.defined;
    for (const SourceParameter& one : kernel.parameters) known.insert(one.name);
    for (const SourceArgument& one : kernel.arguments) known.insert(one.name);
    known.insert(preamble_.fixed.begin(), preamble_.fixed.end());
    const auto builtin = [&](const std::string& word) {
      for (const char* prefix : {"CLK_", "CL_", "M_", "FLT_", "DBL_", "INT_", "UINT_", "CHAR_",
                                 "LONG_", "ULONG_", "SHRT_", "HALF_", "CUDA", "__"})
        if (starts_with(word, prefix)) return true;
      return kBuiltin.count(word) > 0;
    };
    std::string heads;
    for (const std::string& line : split(directives_, '\n'))
      if (line.find("if") != line.npos)
        heads += line.substr(std::min(line.find("if") + 2, line.size())) + "\n";
    for (const std::string& word : words(code_ + " " + heads)) {
      if (!kCapital.matches(word) || builtin(word) || !known.insert(word).second) continue;
      const std::size_t at = find_word(code_, word);
      const std::size_t next = at == code_.npos ? at : skip_blanks(code_, at + word.size());
      if (next != code_.npos && next < code_.size() && code_[next] == '(') continue;  // a function
      const Regex declared("[A-Za-z_0-9]\\s+\\*?" + word + "\\s*(=[^=]|;|,|\\[)");
      if (declared.search(code_)) continue;
      kernel.parameters.push_back(
          {word, std::nullopt, {}, "a macro that the source does not define"});
    }
  }

  void read_axes(const std::string& body, KernelSource& kernel) const {
    static const Regex kOpencl(R"(get_(?:global|group|local)_id\s*\(\s*([012])\s*\))");
    static const Regex kCuda(R"((?:threadIdx|blockIdx)\s*\.\s*([xyz]))");
    const Regex& use = cuda_ ? kCuda : kOpencl;
    use.each(body, [&](const Regex::Groups& match) { kernel.axes[axis_of(match[1])].used = true; });
    static const Regex kIndex(
        R"((\w+)\s*=\s*([^;=]*(?:get_global_id\s*\(\s*([012])\s*\)|blockIdx\s*\.\s*([xyz])[^;]*threadIdx|threadIdx\s*\.\s*([xyz])[^;]*blockIdx)[^;]*);)");
    kIndex.each(body, [&](const Regex::Groups& match) {
      const std::string_view letter = match[3].data() != nullptr   ? match[3]
                                      : match[4].data() != nullptr ? match[4]
                                                                   : match[5];
      SourceAxis& axis = kernel.axes[axis_of(letter)];
      for (const SourceParameter& parameter : kernel.parameters)
        if (Regex("\\*\\s*" + parameter.name + "\\b|\\b" + parameter.name + "\\s*\\*")
                .search(match[2]))
          axis.factors.push_back(parameter.name);
      if (axis.bound.empty()) axis.bound = bound_of(body, std::string(match[1]), kernel);
    });
  }

  static std::size_t axis_of(std::string_view letter) {
    return letter == "1" || letter == "y" ? 1 : letter == "2" || letter == "z" ? 2 : 0;
  }

  // The argument with which an index is compared.
  static std::string bound_of(const std::string& body, const std::string& index,
                              const KernelSource& kernel) {
    const Regex compared("\\b" + index + R"(\s*(?:<|>=)\s*(?:\(\s*\w+\s*\)\s*)?(\w+))");
    std::string found;
    compared.each(body, [&](const Regex::Groups& match) {
      for (const SourceArgument& one : kernel.arguments)
        if (found.empty() && !one.pointer && one.name == match[1]) found = one.name;
    });
    return found;
  }

  const bool cuda_;
  const std::string clean_;
  std::string code_;  // without directives
  std::string directives_;
  Preamble preamble_;
};

}  // namespace

std::vector<KernelSource> read_c_kernels(std::string_view text, bool cuda) {
  return CReader(text, cuda).read();
}

}  // namespace purlin::tune
