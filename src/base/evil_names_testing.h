// SPDX-License-Identifier: Apache-2.0
// For tests only: names that a file may give to a kernel, a device or a range.
#pragma once

#include <string>
#include <vector>

namespace purlin {

inline std::vector<std::string> evil_names() {
  return {"esc\x1b[2J\x1b]0;pwn\x07\x1b[31mred",
          "c1\xc2\x9b"
          "31mX",
          "bell\x07\b\x7f",
          "line\nsecond",
          "line\n::error::forged",
          "::error::pwn",
          "  ::warning title=x::pwn",
          "##[error]pwn",
          "%0A::warning::x",
          "tab\t\x1e",
          "carriage\rover",
          "bidi\xe2\x80\xaegnp.exe",
          "bytes\xff\xfe\x80",
          "<img src=x onerror=alert(1)>",
          "</script><script>alert(1)</script>",
          "&quot;",
          "]]>",
          "[x](javascript:alert(1))",
          "![p](http://evil/p.png)",
          "http://evil.example/",
          "@everyone",
          "#1",
          "\\| x |",
          "a|b",
          "`x`",
          "**bold** _it_",
          "=1+1",
          "+cmd|' /C calc'!A0",
          "\"quoted\",cell",
          "gemm<float>"};
}

}  // namespace purlin
