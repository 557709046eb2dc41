// SPDX-License-Identifier: Apache-2.0
// vLLM's configs of its fused-MoE kernel: E=8,N=7168,device_name=NVIDIA_H100_80GB_HBM3[,dtype=…]
// [,block_shape=[128,128]].json holds {"M": config}, with Triton's version from some version on.
// What the name says further goes into the key's dtype as it stands, so that it is written again.
// SGLang ends the name of its second kernel's configs, the down projection, with "_down". Others
// state more sizes: "H=2048,E=64,N=768,…" of MetaX.
#include "base/text.h"
#include "cache/foreign/parts.h"

#include <algorithm>
#include <map>

namespace purlin::cache::foreign {
namespace {

constexpr std::size_t kMaxShapes = 10'000;
constexpr std::size_t kMaxSizes = 6;
constexpr std::string_view kKernel = "vllm.fused_moe";
constexpr std::string_view kDownKernel = "sglang.fused_moe_down";
constexpr std::string_view kDown = "_down";

struct Name {
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // E, N and others, in order
  std::string device, dtype;  // dtype: with all that follows it in the name
  bool down = false;

  bool has(std::string_view size) const {
    return std::any_of(sizes.begin(), sizes.end(),
                       [&](const auto& one) { return one.first == size; });
  }
};

bool is_size_name(std::string_view name) {
  return !name.empty() && name.size() <= 8 && name != "M" &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

Result<Name> parse_name(std::string_view file) {
  std::string_view base = base_name(file);
  if (ends_with(base, ".json")) base.remove_suffix(5);
  const auto wrong = [&] {
    return error(Code::kInvalid,
                 "the file's name says what it is about, and '{}' is not such as "
                 "E=8,N=7168,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8.json",
                 base_name(file));
  };
  Name name;
  if (ends_with(base, kDown)) {
    base.remove_suffix(kDown.size());
    name.down = true;
  }
  std::string rest;
  for (const std::string& part : split(base, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view value =
        equals == std::string::npos ? "" : std::string_view(part).substr(equals + 1);
    const std::string_view key = std::string_view(part).substr(0, std::min(equals, part.size()));
    if (name.device.empty() && rest.empty() && is_size_name(key)) {
      const std::int64_t size = parse_int(value).value_or(0);
      if (size < 1 || name.has(key) || name.sizes.size() == kMaxSizes) return wrong();
      name.sizes.emplace_back(key, size);
    } else if (key == "device_name" && rest.empty()) {
      name.device = value;
      std::replace(name.device.begin(), name.device.end(), '_', ' ');
    } else {
      // block_shape=[128,128] contains a comma.
      rest += (rest.empty() ? "" : ",") + part;
    }
  }
  if (!name.has("E") || !name.has("N") || name.device.empty()) return wrong();
  name.dtype = starts_with(rest, "dtype=") ? rest.substr(6) : rest;
  return name;
}

}  // namespace

Result<ForeignEntries> read_vllm_moe(std::string_view file, std::string_view bytes,
                                     const ForeignFacts& facts) {
  PURLIN_ASSIGN(const Name name, parse_name(file));
  PURLIN_ASSIGN(const Json document, Json::parse(bytes, {.max_bytes = kMaxForeignBytes}));
  if (!document.is_object() || document.size() == 0)
    return error(Code::kInvalid, "it is no object of batch sizes and their configs");
  if (document.size() > kMaxShapes)
    return error(Code::kInvalid, "it has more than {} batch sizes", kMaxShapes);
  PURLIN_ASSIGN(const BucketRule powers, BucketRule::parse("pow2"));
  ForeignEntries read;
  for (const Json::Member& member : document.members()) {
    if (member.key == "triton_version") continue;
    const std::optional<std::int64_t> batch = parse_int(member.key);
    if (!batch || *batch < 1 || !member.value.is_object()) {
      read.skipped.push_back(fmt::format("'{}' is no batch size with a config", member.key));
      continue;
    }
    Entry entry;
    entry.key.op = "fused_moe";
    entry.key.kernel = name.down ? kDownKernel : kKernel;
    entry.key.dtype = name.dtype;
    entry.key.device = name.device;
    if (const std::string& version = document["triton_version"].as_string(); !version.empty())
      entry.key.toolkit = "triton " + version;
    for (const auto& [size, value] : name.sizes) {
      entry.problem.set(size, value);
      entry.bucket_rules.emplace_back(size, BucketRule());
    }
    entry.problem.set("M", *batch);
    entry.bucket_rules.emplace_back("M", powers);
    bool usable = true;
    for (const Json::Member& parameter : member.value.members()) {
      const std::optional<Value> value = plain_value(parameter.value);
      usable = usable && value.has_value();
      if (value) entry.config.set(parameter.key, *value);
    }
    if (!usable || entry.config.empty()) {
      read.skipped.push_back(fmt::format("the config of M={} is not one of plain values", *batch));
      continue;
    }
    PURLIN_TRY(finish(entry, ForeignFormat::kVllmMoe, facts));
    read.entries.push_back(std::move(entry));
  }
  if (read.entries.empty())
    return error(Code::kInvalid, "it holds no batch size with a config{}",
                 read.skipped.empty() ? "" : ": " + read.skipped.front());
  return read;
}

Result<NamedFiles> write_vllm_moe(std::span<const Entry> entries) {
  // By file name, then by batch size.
  std::map<std::string, std::map<std::int64_t, const Entry*>> files;
  for (const Entry& entry : entries) {
    const std::int64_t* batch = entry.problem.find("M");
    const bool down = entry.key.kernel == kDownKernel;
    if (entry.key.op != "fused_moe" || (entry.key.kernel != kKernel && !down) ||
        entry.problem.find("E") == nullptr || entry.problem.find("N") == nullptr ||
        batch == nullptr)
      continue;
    std::string device = entry.key.device;
    for (char& c : device)
      if (c == ' ' || c == '/') c = '_';
    std::string further = entry.key.dtype;
    std::replace(further.begin(), further.end(), '/', '_');
    // Where weights are not quantized the name has no dtype, but may state other things.
    const std::size_t equals = further.find('=');
    const bool has_dtype = equals == std::string::npos || further.find(',') < equals;
    const char* joint = further.empty() ? "" : has_dtype ? ",dtype=" : ",";
    std::string name;
    for (const auto& [size, value] : entry.problem.items())
      if (size != "M") name += fmt::format("{}={},", size, value);
    name += fmt::format("device_name={}{}{}{}.json", device, joint, further, down ? kDown : "");
    const Entry*& held = files[name][*batch];
    if (held == nullptr || entry.recorded_at > held->recorded_at) held = &entry;
  }
  if (files.empty())
    return error(Code::kNotFound,
                 "there is no entry of op fused_moe and kernel {} with a problem of E, N and M",
                 kKernel);
  NamedFiles written;
  for (const auto& [name, batches] : files) {
    Json document = Json::object();
    constexpr std::string_view kTriton = "triton ";
    if (const std::string& toolkit = batches.begin()->second->key.toolkit;
        starts_with(toolkit, kTriton))
      document.set("triton_version", toolkit.substr(kTriton.size()));
    for (const auto& [batch, entry] : batches)
      document.set(std::to_string(batch), to_json(entry->config));
    written.emplace_back(name, document.dump(4) + "\n");
  }
  return written;
}

}  // namespace purlin::cache::foreign
