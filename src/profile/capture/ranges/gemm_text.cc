// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/gemm_text.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace purlin::profile::capture {
namespace {

constexpr std::string_view kShape = ", shape = ", kDtype = ", dtype = ";

void append(OpText& out, const char* format, ...) __attribute__((format(printf, 2, 3)));
void append(OpText& out, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int wrote = std::vsnprintf(out.bytes + out.size, kMaxOpText - out.size, format, arguments);
  va_end(arguments);
  if (wrote > 0 && out.size + static_cast<std::size_t>(wrote) < kMaxOpText)
    out.size += static_cast<std::size_t>(wrote);
}

std::string field(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + key.size());
  return std::string(text.substr(0, text.find(", ")));
}

}  // namespace

void write_gemm(const GemmFacts& facts, OpText& out) {
  out.size = 0;
  out.is_op = true;
  // The same product as row-major memory has it: the transposed one, operands exchanged.
  GemmFacts row = facts;
  if (!facts.row_major) {
    row.m = facts.n;
    row.n = facts.m;
    row.transposed_a = facts.transposed_b;
    row.transposed_b = facts.transposed_a;
    row.lda = facts.ldb;
    row.ldb = facts.lda;
    row.type_a = facts.type_b;
    row.type_b = facts.type_a;
  }
  append(out, "%s", facts.entry);
  if (row.m > 0 && row.n > 0 && row.k > 0 && row.batch > 0) {
    append(out, ", shape = ");
    if (row.batch != 1) append(out, "B=%" PRId64 ",", row.batch);
    append(out, "M=%" PRId64 ",N=%" PRId64 ",K=%" PRId64, row.m, row.n, row.k);
  }
  if (*row.type_a != '\0') append(out, ", dtype = %s", row.type_a);
  append(out, ", layout = %c%c", row.transposed_a ? 't' : 'n', row.transposed_b ? 't' : 'n');
  append(out, ", ld = %" PRId64 ",%" PRId64 ",%" PRId64, row.lda, row.ldb, row.ldc);
  if (std::strcmp(row.type_b, row.type_a) != 0) append(out, ", right = %s", row.type_b);
  if (std::strcmp(row.type_c, row.type_a) != 0) append(out, ", out = %s", row.type_c);
  if (*facts.compute != '\0') append(out, ", compute = %s", facts.compute);
  if (*facts.epilogue != '\0') append(out, ", epilogue = %s", facts.epilogue);
}

std::string gemm_shape(std::string_view text) { return field(text, kShape); }
std::string gemm_dtype(std::string_view text) { return field(text, kDtype); }

}  // namespace purlin::profile::capture
