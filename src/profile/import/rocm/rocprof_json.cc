// SPDX-License-Identifier: Apache-2.0
#include "profile/import/rocm/rocprof_json.h"

#include "base/json/json.h"
#include "base/text.h"
#include "profile/import/csv.h"
#include "profile/import/rocm/run_builder.h"

#include <algorithm>
#include <unordered_map>

namespace purlin::profile {
namespace {

constexpr std::size_t kMostJsonBytes = std::size_t{1} << 30;
constexpr std::int64_t kGpuAgent = 2;  // rocprofiler_agent_type_t

std::uint32_t count_at(const Json& json, std::string_view key) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(json[key].as_int(), 0, std::int64_t{0xFFFFFFFF}));
}

Dim3 extents_of(const Json& json) {
  return {count_at(json, "x"), count_at(json, "y"), count_at(json, "z")};
}

// Handles are objects, or numbers in the first versions.
std::int64_t handle_of(const Json& json) {
  return json.is_object() ? json["handle"].as_int() : json.as_int();
}

RocmSpan span_of(const Json& record) {
  return {record["start_timestamp"].as_int(), record["end_timestamp"].as_int()};
}

std::int64_t correlation_of(const Json& record) {
  return record["correlation_id"]["internal"].as_int();
}

RocmAgent agent_of(const Json& json) {
  RocmAgent agent;
  agent.id = handle_of(json["id"]);
  agent.node = json["node_id"].as_int(-1);
  agent.ordinal = json["logical_node_type_id"].as_int(-1);
  agent.gpu = json["type"].as_int() == kGpuAgent;
  DeviceInfo& info = agent.info;
  info.name = json["product_name"].as_string();
  info.arch = json["name"].as_string();
  if (info.name.empty()) info.name = info.arch;
  info.compute_units = static_cast<int>(count_at(json, "cu_count") & 0xFFFFFF);
  info.clock_mhz = count_at(json, "max_engine_clk_fcompute");
  info.warp_size = static_cast<int>(count_at(json, "wave_front_size") & 0xFFFF);
  info.shared_memory_per_unit = std::int64_t{count_at(json, "lds_size_in_kb")} * 1024;
  std::int64_t memory = 0;
  for (const Json& bank : json["mem_banks"].items())
    memory = std::max(memory, bank["size_in_bytes"].as_int());
  info.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(memory, 0));
  return agent;
}

struct Symbol {
  std::string name;
  std::uint32_t registers = 0;
};

// One process's part of the document.
class ToolOutput {
 public:
  ToolOutput(const Json& tool, std::uint64_t key, RocmRun& run) : tool_(tool), run_(run) {
    const Json& metadata = tool["metadata"];
    std::vector<std::string> words;
    for (const Json& word : metadata["command"].items()) words.push_back(word.as_string());
    process_ = run.process(key, metadata["pid"].as_int(), join(words, " "));
  }

  void agents() {
    for (const Json& agent : tool_["agents"].items()) run_.add_agent(agent_of(agent));
  }

  void calls() {
    const Json& strings = tool_["strings"]["buffer_records"];
    for (const std::string_view table : {"hip_api", "marker_api", "rccl_api"})
      for (const Json& record : tool_["buffer_records"][table].items()) {
        const std::string& name = name_of(strings, record);
        if (!name.empty())
          run_.add_call(name, span_of(record), process_, count_at(record, "thread_id"),
                        correlation_of(record));
      }
  }

  void work() {
    symbols();
    for (const Json& record : tool_["buffer_records"]["kernel_dispatch"].items()) {
      const std::optional<std::uint32_t> row = dispatch(record, record["dispatch_info"]);
      if (row) rows_[record["dispatch_info"]["dispatch_id"].as_int()] = *row;
    }
    const Json& strings = tool_["strings"]["buffer_records"];
    for (const Json& record : tool_["buffer_records"]["memory_copy"].items()) {
      RocmCopy copy;
      copy.direction = name_of(strings, record);
      copy.span = span_of(record);
      copy.process = process_;
      copy.source_agent = handle_of(record["src_agent_id"]);
      copy.target_agent = handle_of(record["dst_agent_id"]);
      copy.stream = handle_of(record["stream_id"]);
      copy.correlation = correlation_of(record);
      copy.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, record["bytes"].as_int()));
      run_.add(copy);
    }
    counters();
  }

 private:
  // Operations are numbers; the document lists their names by kind.
  static const std::string& name_of(const Json& strings, const Json& record) {
    const auto at = [](const Json& list, std::int64_t index) -> const Json& {
      static const Json none;
      return index >= 0 && static_cast<std::size_t>(index) < list.items().size()
                 ? list.items()[static_cast<std::size_t>(index)]
                 : none;
    };
    if (const std::string& named = record["name"].as_string(); !named.empty()) return named;
    return at(at(strings, record["kind"].as_int(-1))["operations"], record["operation"].as_int(-1))
        .as_string();
  }

  void symbols() {
    for (const Json& symbol : tool_["kernel_symbols"].items()) {
      Symbol& known = symbols_[symbol["kernel_id"].as_int()];
      for (const std::string_view key :
           {"demangled_kernel_name", "formatted_kernel_name", "kernel_name"})
        if (known.name.empty()) known.name = symbol[key].as_string();
      known.registers =
          count_at(symbol, "arch_vgpr_count") + (count_at(symbol, "accum_vgpr_count") & 0xFFFF);
    }
  }

  std::optional<std::uint32_t> dispatch(const Json& record, const Json& info) {
    const Symbol& symbol = symbols_[info["kernel_id"].as_int()];
    RocmDispatch dispatch;
    dispatch.name = symbol.name;
    dispatch.span = span_of(record);
    dispatch.process = process_;
    dispatch.agent = handle_of(info["agent_id"]);
    const std::int64_t stream = handle_of(record["stream_id"]);
    dispatch.stream = stream > 0 ? stream : handle_of(info["queue_id"]);
    dispatch.correlation = correlation_of(record);
    dispatch.items = extents_of(info["grid_size"]);
    dispatch.group = extents_of(info["workgroup_size"]);
    dispatch.registers = symbol.registers;
    dispatch.shared_bytes = count_at(info, "group_segment_size");
    dispatch.scratch_bytes = count_at(info, "private_segment_size");
    return run_.add(dispatch);
  }

  // Values of several instances of a counter belong together.
  void counters() {
    std::unordered_map<std::int64_t, std::string> names;
    for (const Json& counter : tool_["counters"].items())
      names[handle_of(counter["id"])] = counter["name"].as_string();
    for (const Json& record : tool_["callback_records"]["counter_collection"].items()) {
      const Json& data = record["dispatch_data"];
      const Json& info = data["dispatch_info"];
      const auto traced = rows_.find(info["dispatch_id"].as_int());
      std::optional<std::uint32_t> row;
      if (traced != rows_.end())
        row = traced->second;
      else
        row = dispatch(data, info);
      if (!row) continue;
      std::map<std::string, double> sums;
      for (const Json& value : record["records"].items())
        sums[names[handle_of(value["counter_id"])]] += value["value"].as_double();
      for (const auto& [name, sum] : sums) run_.add_counter(*row, name, sum);
    }
  }

  const Json& tool_;
  RocmRun& run_;
  std::uint32_t process_ = 0;
  std::unordered_map<std::int64_t, Symbol> symbols_;
  std::unordered_map<std::int64_t, std::uint32_t> rows_;  // by dispatch
};

}  // namespace

bool looks_like_rocprof_json(std::string_view prefix) {
  const std::size_t first = prefix.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && prefix[first] == '{' &&
         prefix.find("\"rocprofiler-sdk-tool\"") != std::string_view::npos;
}

Result<Profile> import_rocprof_json(Input input, const std::string& name,
                                    const ImportOptions& options) {
  constexpr int kDeepest = 32;
  Result<std::string> text = input.read_all(kMostJsonBytes);
  if (!text.is_ok()) return in_file(text.status(), name);
  const Result<Json> document = Json::parse(*text, {kMostJsonBytes, kDeepest});
  if (!document.is_ok()) return in_file(document.status(), name);
  text->clear();
  RocmRun run(options);
  std::vector<ToolOutput> tools;
  for (const Json& tool : (*document)["rocprofiler-sdk-tool"].items())
    tools.emplace_back(tool, tools.size(), run);
  for (ToolOutput& tool : tools) tool.agents();
  for (ToolOutput& tool : tools) tool.calls();
  run.link_calls();
  for (ToolOutput& tool : tools) tool.work();
  return run.finish(name);
}

Result<Profile> import_rocprof_json(const std::string& path, const ImportOptions& options) {
  PURLIN_ASSIGN(Input input, Input::open(path));
  return import_rocprof_json(std::move(input), path, options);
}

}  // namespace purlin::profile
