// SPDX-License-Identifier: Apache-2.0
#include "cache/foreign/foreign.h"

#include "base/text.h"
#include "base/time.h"
#include "base/version.h"
#include "cache/foreign/parts.h"
#include "model/device/gpu_table.h"

#include <array>

namespace purlin::cache {
namespace {

constexpr std::array<std::pair<ForeignFormat, std::string_view>, 3> kFormats = {{
    {ForeignFormat::kTriton, "triton"},
    {ForeignFormat::kVllmMoe, "vllm-moe"},
    {ForeignFormat::kTunableOp, "tunableop"},
}};

}  // namespace

std::string_view foreign_format_name(ForeignFormat format) {
  for (const auto& [value, name] : kFormats)
    if (value == format) return name;
  return "";
}

Result<ForeignFormat> parse_foreign_format(std::string_view name) {
  for (const auto& [value, known] : kFormats)
    if (known == name) return value;
  return error(Code::kInvalid, "format '{}' is none of: triton, vllm-moe, tunableop", name);
}

std::optional<ForeignFormat> guess_foreign_format(std::string_view name, std::string_view bytes) {
  const std::string_view base = foreign::base_name(name);
  if (ends_with(base, ".autotune.json")) return ForeignFormat::kTriton;
  if (ends_with(base, ".json") && base.find("device_name=") != std::string_view::npos &&
      (starts_with(base, "E=") || base.find(",E=") != std::string_view::npos))
    return ForeignFormat::kVllmMoe;
  const std::string_view begin = trim(bytes.substr(0, 64));
  if (starts_with(begin, "Validator,") || begin.find("TunableOp_") < 32)
    return ForeignFormat::kTunableOp;
  return std::nullopt;
}

Result<ForeignEntries> read_foreign(ForeignFormat format, std::string_view name,
                                    std::string_view bytes, const ForeignFacts& facts) {
  if (bytes.size() > kMaxForeignBytes)
    return error(Code::kInvalid, "{} is more than {}, which no such file is",
                 format_bytes(static_cast<double>(bytes.size())),
                 format_bytes(static_cast<double>(kMaxForeignBytes)));
  switch (format) {
    case ForeignFormat::kTriton:
      return foreign::read_triton(name, bytes, facts);
    case ForeignFormat::kVllmMoe:
      return foreign::read_vllm_moe(name, bytes, facts);
    case ForeignFormat::kTunableOp:
      return foreign::read_tunable_op(bytes, facts);
  }
  return error(Code::kInvalid, "no such format");
}

Result<NamedFiles> write_foreign(ForeignFormat format, std::span<const Entry> entries) {
  switch (format) {
    case ForeignFormat::kTriton:
      return foreign::write_triton(entries);
    case ForeignFormat::kVllmMoe:
      return foreign::write_vllm_moe(entries);
    case ForeignFormat::kTunableOp:
      return foreign::write_tunable_op(entries);
  }
  return error(Code::kInvalid, "no such format");
}

namespace foreign {

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

void fill_device(CacheKey& key) {
  if (key.arch.empty() && !key.device.empty())
    if (const GpuModel* model = find_gpu(key.device)) key.arch = model->arch;
  if (!key.backend.empty()) return;
  if (starts_with(key.arch, "gfx")) key.backend = "hip";
  if (starts_with(key.arch, "sm_")) key.backend = "cuda";
  if (starts_with(key.arch, "xe")) key.backend = "xpu";
}

Status finish(Entry& entry, ForeignFormat format, const ForeignFacts& facts) {
  Json key = to_json(entry.key);
  for (const auto& [field, value] : facts.key.fields())
    if (!value.empty()) key.set(field, value);
  key.set("backend", key["backend"].as_string().empty() ? "cuda" : key["backend"].as_string());
  PURLIN_ASSIGN(entry.key, key_from_json(key));
  fill_device(entry.key);
  if (entry.key.arch.empty())
    return error(Code::kInvalid,
                 "the file does not say on which arch it was measured{}; state it: "
                 "--with arch=sm_90",
                 entry.key.device.empty() ? "" : ", and '" + entry.key.device + "' is not known");
  if (starts_with(entry.key.arch, "gfx") && facts.key.backend.empty()) entry.key.backend = "hip";
  PURLIN_ASSIGN(entry.key.bucket, bucket_of(entry.bucket_rules, entry.problem));
  entry.verified = false;
  entry.strategy = fmt::format("import {}", foreign_format_name(format));
  entry.tool_version = version();
  entry.host = host_name();
  entry.user = user_name();
  entry.recorded_at = format_rfc3339(system_clock().wall_ns());
  // What a lookup could not read back is refused here, where the file can be named.
  return entry_from_json(to_json(entry)).status();
}

std::optional<Value> plain_value(const Json& json) {
  if (json.is_bool()) return Value(json.as_bool());
  if (json.is_int()) return Value(json.as_int());
  if (json.is_number()) return Value(json.as_double());
  if (json.is_string()) return Value(json.as_string());
  return std::nullopt;
}

}  // namespace foreign
}  // namespace purlin::cache
