// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/node_reader.h"

#include "base/hash.h"
#include "base/json/json.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

namespace purlin::profile::flow {
namespace {

constexpr std::size_t kMaxNodes = 2'000'000, kMaxUses = 16'000'000, kMaxNames = 200'000;
constexpr std::size_t kMaxExtents = 64'000'000, kMaxSchemas = 20'000, kMaxSchemaBytes = 16 << 10;
constexpr std::size_t kMaxRank = 32, kMaxNameBytes = 512;

// JsonView and Json read alike; a view is copied for nothing, a value rarely.
template <class J>
std::vector<J> items_of(const J& json) {
  std::vector<J> items;
  items.reserve(json.size());
  if (json.is_array())
    for (const auto& item : json.items()) items.push_back(item);
  return items;
}

template <class J>
std::string text_of(const J& json) {
  if constexpr (std::is_same_v<J, JsonView>) {
    return std::string(json.text());
  } else {
    return json.dump();
  }
}

double size_of(std::int64_t value) { return static_cast<double>(std::max<std::int64_t>(0, value)); }

template <class J>
J at(const std::vector<J>& list, std::size_t i) {
  return i < list.size() ? list[i] : J();
}

}  // namespace

template <class J>
Status NodeReader::node(const J& json) {
  if (trace_.nodes.size() >= kMaxNodes || trace_.uses.size() >= kMaxUses ||
      trace_.extents.size() >= kMaxExtents || trace_.names.size() >= kMaxNames ||
      trace_.schemas.size() >= kMaxSchemas)
    return error(Code::kInvalid,
                 "more than {} nodes, {} tensors, {} dimensions, {} names or {} schemas; record "
                 "fewer steps: three are enough",
                 kMaxNodes, kMaxUses, kMaxExtents, kMaxNames, kMaxSchemas);
  const auto id = json.find("id");
  if (!id || !id->is_int() || id->as_int() < 0)
    return error(Code::kCorrupt, "node {} has no id", trace_.nodes.size());
  TraceNode made;
  made.id = static_cast<std::uint64_t>(id->as_int());
  made.name = name_of(json["name"].as_string());
  for (const auto& attribute : json["attrs"].items()) {
    const std::string_view key = attribute["name"].as_string();
    const auto& value = attribute["value"];
    if (key == "op_schema") {
      made.schema = schema_of(value.as_string());
    } else if (key == "tid") {
      made.thread = static_cast<std::uint32_t>(hash64(text_of(value)));
    } else if (key == "fw_tid") {
      made.forward_thread = static_cast<std::uint32_t>(hash64(text_of(value)));
    } else if (key == "seq_id") {
      made.sequence = value.as_int(-1);
    } else if (key == "scope") {
      made.scope = static_cast<std::uint8_t>(std::clamp<std::int64_t>(value.as_int(), 0, 255));
    } else if (key == "kernel_backend") {
      made.kernel = !std::string_view(value.as_string()).empty();
    }
  }
  made.first_use = static_cast<std::uint32_t>(trace_.uses.size());
  literals_.clear();
  arguments(json["inputs"], &made);
  made.inputs = static_cast<std::uint32_t>(trace_.uses.size()) - made.first_use;
  made.literals = hash64(literals_);
  arguments(json["outputs"], nullptr);
  made.outputs = static_cast<std::uint32_t>(trace_.uses.size()) - made.first_use - made.inputs;
  trace_.nodes.push_back(made);
  parents_.push_back(static_cast<std::uint64_t>(json["ctrl_deps"].as_int()));
  return Status::ok();
}

// `node`: of inputs, whose plain values are kept.
template <class J>
void NodeReader::arguments(const J& side, TraceNode* node) {
  const std::vector<J> values = items_of<J>(side["values"]), shapes = items_of<J>(side["shapes"]),
                       types = items_of<J>(side["types"]), strides = items_of<J>(side["strides"]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string_view type =
        i < types.size() ? std::string_view(types[i].as_string()) : std::string_view();
    if (type.find("Tensor") != std::string_view::npos) {
      tensors(values[i], at(shapes, i), at(strides, i), type, i, 0);
    } else if (node != nullptr) {
      literal(values[i], i, *node);
    }
  }
}

template <class J>
void NodeReader::literal(const J& value, std::size_t place, TraceNode& node) {
  literals_ += fmt::format("{}:{}\n", place, text_of(value));
  const std::vector<SchemaArgument>& known = trace_.schemas[node.schema].arguments;
  if (place >= known.size()) return;
  const std::string& name = known[place].name;
  if (name == "dropout_p" || name == "dropout") node.dropout = value.as_double() != 0;
  if (name == "training" || name == "train" || name == "use_input_stats")
    node.training = value.as_bool();
}

// A tensor, or a list of them.
template <class J>
void NodeReader::tensors(const J& value, const J& shape, const J& stride, std::string_view type,
                         std::size_t place, int depth) {
  if (!value.is_array() || depth > kMaxDepth || trace_.uses.size() >= kMaxUses) return;
  const std::vector<J> parts = items_of(value);
  if (parts.size() == 6 && parts[0].is_int() && parts[5].is_string()) {
    tensor(parts, shape, stride, type, place);
    return;
  }
  const std::vector<J> shapes = items_of(shape), strides = items_of(stride);
  for (std::size_t i = 0; i < parts.size(); ++i)
    tensors(parts[i], at(shapes, i), at(strides, i), type, place, depth + 1);
}

// [tensor, storage, offset, elements, bytes of an element, device]
template <class J>
void NodeReader::tensor(const std::vector<J>& parts, const J& shape, const J& stride,
                        std::string_view type, std::size_t place) {
  TensorUse use;
  const std::int64_t elements = parts[3].as_int();
  // Without a device or elements there is nothing to read.
  const std::string_view device = parts[5].as_string();
  if (parts[1].as_int() > 0 && elements > 0 && !device.empty())
    use.storage =
        storages_.try_emplace(parts[1].as_int(), static_cast<std::uint32_t>(storages_.size()) + 1)
            .first->second;
  use.argument = static_cast<std::uint16_t>(
      std::min<std::size_t>(place, std::numeric_limits<std::uint16_t>::max()));
  use.offset = size_of(parts[2].as_int());
  use.item_bytes = std::max(1.0, size_of(parts[4].as_int()));
  use.host = starts_with(device, "cpu");
  use.first_extent = static_cast<std::uint32_t>(trace_.extents.size());
  layout_ = fmt::format("{} {} {}", type.substr(0, 64), parts[2].as_int(), parts[4].as_int());
  use.elements = shape.is_array() ? 1 : size_of(elements);
  const std::vector<J> sizes = items_of(shape), steps = items_of(stride);
  for (std::size_t i = 0; i < std::min(sizes.size(), kMaxRank); ++i) {
    const Extent extent = {std::max<std::int64_t>(0, sizes[i].as_int()),
                           i < steps.size() ? steps[i].as_int() : 1};
    trace_.extents.push_back(extent);
    layout_ += fmt::format(" {}/{}", extent.size, extent.stride);
    if (extent.stride != 0) use.elements *= static_cast<double>(extent.size);
  }
  use.rank = static_cast<std::uint8_t>(trace_.extents.size() - use.first_extent);
  use.elements = std::min(use.elements, size_of(elements));
  use.last = use.rank > 0 ? static_cast<double>(trace_.extents.back().size) : 1;
  use.dense_rows = use.rank > 0 && trace_.extents.back().stride == 1;
  use.view = hash64(layout_);
  trace_.uses.push_back(use);
}

std::uint32_t NodeReader::name_of(std::string_view text) {
  const std::string name(text.substr(0, kMaxNameBytes));
  const auto [at, added] =
      names_.try_emplace(name, static_cast<std::uint32_t>(trace_.names.size()));
  if (added) trace_.names.push_back(name);
  return at->second;
}

std::uint32_t NodeReader::schema_of(std::string_view text) {
  if (text.empty()) return 0;
  text = text.substr(0, kMaxSchemaBytes);
  const auto [at, added] =
      schemas_.try_emplace(std::string(text), static_cast<std::uint32_t>(trace_.schemas.size()));
  if (added) trace_.schemas.push_back(parse_schema(text));
  return at->second;
}

Status NodeReader::add(std::string_view json) {
  if (scan_.scan(json)) return node(scan_.root());
  PURLIN_ASSIGN(const Json parsed, Json::parse(json, {kMaxNodeBytes, kMaxDepth}));
  return node(parsed);
}

ExecutionTrace NodeReader::finish() {
  std::vector<std::uint32_t> order(trace_.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace_.nodes[a].id < trace_.nodes[b].id;
  });
  std::vector<TraceNode> sorted;
  std::vector<std::uint8_t> depth;
  std::unordered_map<std::uint64_t, std::uint32_t> place;
  sorted.reserve(order.size());
  depth.reserve(order.size());
  for (const std::uint32_t at : order) {
    const auto self = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(trace_.nodes[at]);
    place.try_emplace(sorted.back().id, self);
    // A parent starts before its children.
    const auto parent = place.find(parents_[at]);
    sorted.back().parent = parent == place.end() ? self : parent->second;
    if (const std::uint32_t above = sorted.back().parent; above == self) {
      depth.push_back(0);
    } else if (depth[above] + 1 < kMaxNesting) {
      depth.push_back(depth[above] + 1);
    } else {
      sorted.back().parent = sorted[above].parent;
      depth.push_back(depth[above]);
    }
  }
  trace_.nodes = std::move(sorted);
  trace_.storages = static_cast<std::uint32_t>(storages_.size()) + 1;
  return std::move(trace_);
}

}  // namespace purlin::profile::flow
