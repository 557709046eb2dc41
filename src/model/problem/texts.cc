// SPDX-License-Identifier: Apache-2.0
// Problems in one text: NVTX ranges of PyTorch, instructions of XLA.
#include "base/text.h"
#include "model/problem/rules.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>

namespace purlin {
namespace {

constexpr std::size_t kMaxText = 16384, kMaxInputs = 128, kMaxRank = 16;

// The whole numbers in a text such as "1, 0}", up to where a bracket closes.
Shape numbers_until_close(std::string_view text) {
  Shape out;
  std::size_t at = 0;
  while (at < text.size() && text[at] != '}' && text[at] != ']' && out.size() < kMaxRank) {
    std::size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (const auto value = parse_int(text.substr(at, end - at))) out.push_back(*value);
    at = end == at ? at + 1 : end;
  }
  return out;
}

// What stands after "key=" or "\"key\":", at the first bracket behind it.
std::optional<Shape> numbers_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t open = text.find_first_of("{[", at + key.size());
  if (open == std::string_view::npos || open > at + key.size() + 3) return std::nullopt;
  return numbers_until_close(text.substr(open + 1));
}

std::string_view value_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + key.size());
  return text.substr(0, std::min(text.find_first_of(" ,}"), text.size()));
}

struct Typed {
  std::string_view dtype;
  Shape shape;
};

// "bf16[8,4]{1,0}" at the beginning of a text; what follows it is left in the text.
std::optional<Typed> take_type(std::string_view& text) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || open == 0 || open > 12) return std::nullopt;
  const std::size_t close = text.find(']', open);
  if (close == std::string_view::npos) return std::nullopt;
  Typed out;
  out.dtype = dtype_of(text.substr(0, open));
  if (out.dtype.empty()) return std::nullopt;
  out.shape = numbers_until_close(text.substr(open + 1, close - open));
  text.remove_prefix(close + 1);
  if (starts_with(text, "{")) text.remove_prefix(std::min(text.find('}'), text.size() - 1) + 1);
  return out;
}

struct Instruction {
  std::string_view name, opcode, attributes;
  std::vector<Typed> results, operands;
};

std::size_t close_of(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at;
  }
  return text.size();
}

std::vector<Typed> types_in(std::string_view text) {
  std::vector<Typed> out;
  while (!text.empty() && out.size() < kMaxInputs) {
    std::string_view rest = text;
    if (auto type = take_type(rest)) {
      out.push_back(std::move(*type));
      text = rest;
      continue;
    }
    // The next word: a type stands after a blank, a comma or a bracket.
    const std::size_t next = text.find_first_of(" ,(");
    if (next == std::string_view::npos) break;
    text.remove_prefix(next + 1);
  }
  return out;
}

std::optional<Instruction> parse_instruction(std::string_view text) {
  Instruction out;
  const std::size_t equals = text.find(" = ");
  if (equals == std::string_view::npos || text.size() > kMaxText) return std::nullopt;
  out.name = trim(text.substr(0, equals));
  if (starts_with(out.name, "ROOT ")) out.name.remove_prefix(5);
  if (starts_with(out.name, "%")) out.name.remove_prefix(1);
  text = trim(text.substr(equals + 3));
  if (starts_with(text, "(")) {
    const std::size_t close = close_of(text, 0);
    out.results = types_in(text.substr(1, close - 1));
    text.remove_prefix(std::min(close + 1, text.size()));
  } else if (auto result = take_type(text)) {
    out.results.push_back(std::move(*result));
  }
  text = trim(text);
  const std::size_t open = text.find('(');
  if (out.results.empty() || open == std::string_view::npos) return std::nullopt;
  out.opcode = text.substr(0, open);
  const std::size_t close = close_of(text, open);
  out.operands = types_in(text.substr(open + 1, close - open - 1));
  out.attributes = text.substr(std::min(close + 1, text.size()));
  return out;
}

double bytes_of(const Typed& typed) {
  return bytes_per_element(typed.dtype) * static_cast<double>(elements_of(typed.shape).value_or(0));
}

void add(Problem& out, const char* name, std::int64_t value) {
  out.dimensions.push_back({name, value});
}

void read_dot(Problem& out, const Instruction& hlo) {
  if (hlo.operands.size() < 2) return;
  const Shape &lhs = hlo.operands[0].shape, &rhs = hlo.operands[1].shape;
  auto contracting = numbers_of(hlo.attributes, "lhs_contracting_dims=");
  if (!contracting) contracting = numbers_of(hlo.attributes, "lhs_contracting_dimensions\":");
  auto batches = numbers_of(hlo.attributes, "lhs_batch_dims=");
  if (!batches) batches = numbers_of(hlo.attributes, "lhs_batch_dimensions\":");
  if (!contracting) return;
  const auto extent = [&](const Shape& axes) -> std::int64_t {
    std::int64_t product = 1;
    for (std::int64_t axis : axes) {
      if (axis < 0 || axis >= std::ssize(lhs)) return 0;
      const auto next = elements_of({product, lhs[static_cast<std::size_t>(axis)]});
      if (!next) return 0;
      product = *next;
    }
    return product;
  };
  const std::int64_t k = extent(*contracting), batch = extent(batches.value_or(Shape{}));
  const auto all_lhs = elements_of(lhs), all_rhs = elements_of(rhs);
  const auto shared = elements_of({k, batch});
  if (!all_lhs || !all_rhs || !shared || *shared < 1) return;
  if (*all_lhs % *shared != 0 || *all_rhs % *shared != 0) return;
  if (batch != 1) add(out, "B", batch);
  add(out, "M", *all_lhs / *shared);
  add(out, "N", *all_rhs / *shared);
  add(out, "K", k);
  const double written = bytes_of(hlo.results[0]);
  const double usual = bytes_per_element(out.dtype) *
                       static_cast<double>(elements_of(hlo.results[0].shape).value_or(0));
  if (written != usual) add(out, "write", std::llround(written));
}

// "b01f_01io->b01f": where batch, features and spatial extents stand in image, filter and result.
void read_hlo_convolution(Problem& out, const Instruction& hlo) {
  if (hlo.operands.size() < 2) return;
  const std::string_view labels = value_of(hlo.attributes, "dim_labels=");
  const std::size_t bar = labels.find('_'), arrow = labels.find("->");
  if (bar == std::string_view::npos || arrow == std::string_view::npos || arrow < bar) return;
  const std::string_view image = labels.substr(0, bar),
                         filter = labels.substr(bar + 1, arrow - bar - 1),
                         result = labels.substr(arrow + 2);
  const auto extent = [](std::string_view label, char which, const Shape& shape) -> std::int64_t {
    const std::size_t at = label.find(which);
    return at < shape.size() && label.size() == shape.size() ? shape[at] : -1;
  };
  const Shape &in = hlo.operands[0].shape, &weight = hlo.operands[1].shape,
              &made = hlo.results[0].shape;
  const bool flat = in.size() == 3, deep = in.size() == 5;
  const std::int64_t groups = std::max<std::int64_t>(
      1, parse_int(value_of(hlo.attributes, "feature_group_count=")).value_or(1));
  std::vector<Dimension> found = {{"N", extent(image, 'b', in)}, {"C", extent(image, 'f', in)}};
  const auto axes = [&](std::string_view label, const Shape& shape, const char* d, const char* h,
                        const char* w) {
    if (deep) found.push_back({d, extent(label, '0', shape)});
    found.push_back({h, flat ? 1 : extent(label, deep ? '1' : '0', shape)});
    found.push_back({w, extent(label, flat ? '0' : deep ? '2' : '1', shape)});
  };
  axes(image, in, "D", "H", "W");
  found.push_back({"K", extent(filter, 'o', weight)});
  axes(filter, weight, "T", "R", "S");
  axes(result, made, "Z", "P", "Q");
  if (groups != 1) found.push_back({"groups", groups});
  for (const Dimension& dimension : found)
    if (dimension.value < 1) return;
  out.dimensions = std::move(found);
}

void read_rows(Problem& out, const Instruction& hlo, bool reduces) {
  const auto written = elements_of(hlo.results[0].shape);
  std::int64_t read = 0, most = 0;
  double bytes = 0, written_bytes = 0;
  for (const Typed& operand : hlo.operands) {
    const auto elements = elements_of(operand.shape);
    if (!elements || !elements_of({read + *elements})) return;
    if (*elements > most) most = *elements, out.dtype = operand.dtype;
    read += operand.shape.empty() ? 0 : *elements;
    bytes += operand.shape.empty() ? 0 : bytes_of(operand);
  }
  for (const Typed& result : hlo.results) written_bytes += bytes_of(result);
  const auto inputs = std::count_if(hlo.operands.begin(), hlo.operands.end(),
                                    [](const Typed& operand) { return !operand.shape.empty(); });
  if (!written) return;
  if (out.dtype.empty()) out.dtype = hlo.results[0].dtype;
  const double size = bytes_per_element(out.dtype);
  if (reduces) {
    if (most == 0) return;
    out.dimensions = {{"n", most}, {"out", *written}};
    if (bytes != size * static_cast<double>(most)) add(out, "read", std::llround(bytes));
  } else {
    out.dimensions = {{"n", *written}, {"inputs", inputs}};
    if (read != inputs * *written) add(out, "in", read);
    if (bytes != size * static_cast<double>(read)) add(out, "read", std::llround(bytes));
  }
  if (written_bytes != size * static_cast<double>(*written))
    add(out, "write", std::llround(written_bytes));
}

std::int64_t ranks_of(std::string_view attributes) {
  constexpr std::string_view kKey = "replica_groups=";
  const std::size_t at = attributes.find(kKey);
  if (at == std::string_view::npos) return 0;
  std::string_view text = attributes.substr(at + kKey.size());
  if (starts_with(text, "{{")) return std::ssize(numbers_until_close(text.substr(2)));
  if (!starts_with(text, "[")) return 0;
  const Shape groups = numbers_until_close(text.substr(1));  // [groups,ranks]<=[…]
  return groups.size() == 2 ? groups[1] : 0;
}

struct Opcode {
  std::string_view name, op_class;
};
constexpr Opcode kOpcodes[] = {
    {"dot", "gemm"},
    {"convolution", "conv"},
    {"reduce", "reduction"},
    {"reduce-window", "reduction"},
    {"sort", "other"},
    {"copy", "copy"},
    {"copy-start", "copy"},
    {"convert", "copy"},
    {"broadcast", "elementwise"},
    {"iota", "elementwise"},
    {"transpose", "layout"},
    {"concatenate", "layout"},
    {"pad", "layout"},
    {"slice", "copy"},
    {"dynamic-slice", "copy"},
    {"reverse", "layout"},
    {"gather", "embedding"},
    {"scatter", "embedding"},
    {"all-reduce", "communication"},
    {"all-reduce-start", "communication"},
    {"all-gather", "communication"},
    {"all-gather-start", "communication"},
    {"reduce-scatter", "communication"},
    {"all-to-all", "communication"},
    {"collective-permute", "communication"},
    {"collective-permute-start", "communication"},
    {"add", "elementwise"},
    {"subtract", "elementwise"},
    {"multiply", "elementwise"},
    {"divide", "elementwise"},
    {"maximum", "elementwise"},
    {"minimum", "elementwise"},
    {"power", "elementwise"},
    {"exponential", "elementwise"},
    {"log", "elementwise"},
    {"tanh", "elementwise"},
    {"logistic", "elementwise"},
    {"rsqrt", "elementwise"},
    {"sqrt", "elementwise"},
    {"negate", "elementwise"},
    {"abs", "elementwise"},
    {"select", "elementwise"},
    {"compare", "elementwise"},
    {"clamp", "elementwise"},
    {"and", "elementwise"},
    {"or", "elementwise"},
    {"not", "elementwise"},
};

std::string_view class_of(const Instruction& hlo) {
  if (hlo.opcode == "fusion") {
    if (hlo.attributes.find("kind=kLoop") != std::string_view::npos) return "elementwise";
    if (hlo.attributes.find("kind=kInput") != std::string_view::npos) return "reduction";
    return "other";
  }
  if (hlo.opcode == "custom-call") {
    const std::string_view target = value_of(hlo.attributes, "custom_call_target=");
    if (target.find("cublas") != std::string_view::npos) return "gemm";
    if (target.find("cudnn$conv") != std::string_view::npos) return "conv";
    if (target.find("fmha") != std::string_view::npos) return "attention";
    if (target.find("Norm") != std::string_view::npos) return "norm";
    return "other";
  }
  for (const Opcode& opcode : kOpcodes)
    if (opcode.name == hlo.opcode) return opcode.op_class;
  return "other";
}

}  // namespace

Problem problem_of_hlo(std::string_view text) {
  Problem out;
  const auto hlo = parse_instruction(text);
  if (!hlo) return out;
  out.op_class = class_of(*hlo);
  out.dtype = hlo->operands.empty() ? hlo->results[0].dtype : hlo->operands[0].dtype;
  if (out.op_class == "gemm") {
    read_dot(out, *hlo);
  } else if (out.op_class == "conv") {
    if (hlo->attributes.find("convBackward") == std::string_view::npos)
      read_hlo_convolution(out, *hlo);
  } else if (out.op_class == "communication") {
    double in = 0, made = 0;
    for (const Typed& operand : hlo->operands)
      in += static_cast<double>(elements_of(operand.shape).value_or(0));
    for (const Typed& result : hlo->results)
      made += static_cast<double>(elements_of(result.shape).value_or(0));
    out = communication_problem(static_cast<std::int64_t>(in), static_cast<std::int64_t>(made),
                                ranks_of(hlo->attributes), out.dtype);
  } else if (out.op_class == "elementwise" || out.op_class == "copy" || out.op_class == "layout") {
    read_rows(out, *hlo, false);
  } else if (out.op_class == "reduction" && !hlo->operands.empty()) {
    read_rows(out, *hlo, true);
  }
  return out;
}

NvtxOp op_from_nvtx(std::string_view text) {
  NvtxOp out;
  constexpr std::string_view kSizes = ", sizes = [";
  const std::size_t sizes = text.find(kSizes);
  std::size_t end = text.size();
  for (std::string_view key : {", seq = ", ", op_id = ", ", sizes = "})
    end = std::min(end, text.find(key));
  out.op = text.substr(0, end);
  if (sizes == std::string_view::npos || text.size() > kMaxText) return out;
  text.remove_prefix(sizes + kSizes.size());
  // One list of extents for each input, until the list of lists closes.
  while (!text.empty() && text[0] != ']' && out.inputs.size() < kMaxInputs) {
    if (text[0] == '[') {
      const std::size_t close = text.find(']');
      if (close == std::string_view::npos) break;
      out.inputs.push_back({numbers_until_close(text.substr(1)), "", "", {}});
      text.remove_prefix(close + 1);
    } else {
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace purlin
