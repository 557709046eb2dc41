// SPDX-License-Identifier: Apache-2.0
// vLLM's configs of its fused-MoE kernel: E=8,N=7168,device_name=NVIDIA_H100_80GB_HBM3[,dtype=…]
// [,block_shape=[128,128]].json holds {"M": config}, with Triton's version from some version on.
// What the name says further goes into the key's dtype as it stands, so that it is written again.
#include "base/text.h"
#include "cache/foreign/parts.h"

#include <algorithm>
#include <map>

namespace purlin::cache::foreign {
namespace {

constexpr std::size_t kMaxShapes = 10'000;
constexpr const char* kKernel = "vllm.fused_moe";

struct Name {
  std::int64_t experts = 0, width = 0;
  std::string device, dtype;  // dtype: with all that follows it in the name
};

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
  std::string rest;
  for (const std::string& part : split(base, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view value =
        equals == std::string::npos ? "" : std::string_view(part).substr(equals + 1);
    if (starts_with(part, "E=") && rest.empty()) {
      name.experts = parse_int(value).value_or(0);
    } else if (starts_with(part, "N=") && rest.empty()) {
      name.width = parse_int(value).value_or(0);
    } else if (starts_with(part, "device_name=") && rest.empty()) {
      name.device = value;
      std::replace(name.device.begin(), name.device.end(), '_', ' ');
    } else {
      // block_shape=[128,128] contains a comma.
      rest += (rest.empty() ? "" : ",") + part;
    }
  }
  if (name.experts < 1 || name.width < 1 || name.device.empty()) return wrong();
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
    entry.key.kernel = kKernel;
    entry.key.dtype = name.dtype;
    entry.key.device = name.device;
    if (const std::string& version = document["triton_version"].as_string(); !version.empty())
      entry.key.toolkit = "triton " + version;
    entry.problem.set("E", name.experts);
    entry.problem.set("N", name.width);
    entry.problem.set("M", *batch);
    entry.bucket_rules = {{"E", {}}, {"N", {}}, {"M", powers}};
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
    const std::int64_t* experts = entry.problem.find("E");
    const std::int64_t* width = entry.problem.find("N");
    const std::int64_t* batch = entry.problem.find("M");
    if (entry.key.op != "fused_moe" || entry.key.kernel != kKernel || experts == nullptr ||
        width == nullptr || batch == nullptr)
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
    const std::string name =
        fmt::format("E={},N={},device_name={}{}{}.json", *experts, *width, device, joint, further);
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
