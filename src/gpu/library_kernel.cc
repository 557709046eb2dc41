// SPDX-License-Identifier: Apache-2.0
#include "gpu/library_kernel.h"

#include "base/json/json.h"
#include "base/text.h"

namespace purlin::gpu {
namespace {

constexpr std::string_view kSchema = "purlin.library-kernel/1";

}  // namespace

Result<DeviceInfo> device_for(const std::optional<LibraryOperation>& library, DeviceInfo device) {
  if (!library) return device;
  PURLIN_ASSIGN(const auto started, start_library(library->library));
  device.toolkit = started->version();
  return device;
}

Result<Binary> library_binary(const CompileRequest& request) {
  PURLIN_TRY(LibraryOperation::parse(request.source).status());
  const Json token = Json::object(
      {{"schema", kSchema}, {"operation", request.source}, {"config", to_json(request.config)}});
  return Binary{request.entry, token.dump(), "", 0};
}

bool is_library_binary(const Binary& binary) {
  return starts_with(binary.image, "{") && binary.image.find(kSchema) != std::string::npos;
}

Result<LibraryToken> read_library_binary(const Binary& binary) {
  PURLIN_ASSIGN(const Json token, Json::parse(binary.image));
  if (token["schema"].as_string() != kSchema)
    return error(Code::kInvalid, "the binary of '{}' is not a library's", binary.entry);
  LibraryToken made;
  PURLIN_ASSIGN(made.operation, LibraryOperation::parse(token["operation"].as_string()));
  PURLIN_ASSIGN(made.config, config_from_json(token["config"]));
  return made;
}

}  // namespace purlin::gpu
