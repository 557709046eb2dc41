// SPDX-License-Identifier: Apache-2.0
#include "model/spec/library.h"

#include "base/text.h"

namespace purlin {

Result<LibraryOperation> read_library_operation(const Toml& node) {
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[library]"));
  LibraryOperation operation;
  PURLIN_ASSIGN(operation.library, table.string("name"));
  const auto dtype = [&](const char* key, Dtype fallback) -> Result<Dtype> {
    PURLIN_ASSIGN(const std::string name, table.string_or(key, std::string(name_of(fallback))));
    if (const auto known = dtype_from_name(name)) return *known;
    return node.find(key)->complain(fmt::format("unknown dtype '{}'", name));
  };
  PURLIN_ASSIGN(operation.a, dtype("a", operation.a));
  PURLIN_ASSIGN(operation.b, dtype("b", operation.a));
  PURLIN_ASSIGN(operation.d, dtype("d", default_result(operation.a)));
  PURLIN_ASSIGN(operation.transpose_a, table.boolean_or("transpose_a", false));
  PURLIN_ASSIGN(operation.transpose_b, table.boolean_or("transpose_b", false));
  PURLIN_ASSIGN(operation.batched, table.boolean_or("batched", false));
  PURLIN_ASSIGN(operation.compute, table.string_or("compute", default_compute(operation.a)));
  PURLIN_ASSIGN(operation.epilogue, table.string_or("epilogue", "none"));
  PURLIN_ASSIGN(const std::int64_t workspace, table.integer_or("workspace_mib", 32));
  if (workspace < 0 || workspace > 4096)
    return node.find("workspace_mib")->complain("workspace_mib is 0 to 4096");
  operation.workspace_bytes = workspace << 20;
  PURLIN_TRY(table.finish());
  if (const Status status = operation.check(); !status.is_ok())
    return node.complain(status.message());
  return operation;
}

}  // namespace purlin
