// SPDX-License-Identifier: Apache-2.0
// Names in, outputs read strictly: whatever a name holds, no sink obeys it.
#include "base/csv.h"
#include "base/output/escaped.h"
#include "base/output/markup.h"
#include "base/output/terminal.h"
#include "base/text.h"
#include "base/utf8.h"
#include "guard/report/report.h"
#include "require.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace purlin;

void require_shown(std::string_view text, std::string_view but) {
  while (!text.empty()) {
    const Utf8 next = first_utf8(text);
    require(next.valid);
    const bool control = next.point < 0x20 || (next.point >= 0x7f && next.point < 0xa0);
    require(!control || but.find(text.front()) != std::string_view::npos);
    text.remove_prefix(next.bytes);
  }
}

void require_no_command(const std::string& text) {
  for (const std::string& line : split(text, '\n'))
    require(!starts_with(trim(line), "::") && line.find("##[") == std::string::npos);
}

guard::Report report_of(const std::string& name) {
  guard::Report report;
  report.suite = name;
  for (const guard::Verdict verdict :
       {guard::Verdict::kRegression, guard::Verdict::kPass, guard::Verdict::kInconclusive}) {
    guard::ReportItem item;
    item.kernel = item.shape = item.file = name;
    item.result.verdict = verdict;
    item.result.reason = item.result.cause = name;
    item.notes = {name};
    report.items.push_back(item);
  }
  report.notes = {name};
  return report;
}

// Each line is a row, a bullet, the head or empty; each row has the cells of the first one.
void require_markdown(const std::string& text) {
  std::size_t bars = 0;
  for (const std::string& line : split(text, '\n')) {
    if (!starts_with(line, "|")) continue;
    std::size_t here = 0;
    for (const char c : line) here += c == '|' ? 1 : 0;
    require(bars == 0 || here == bars);
    bars = here;
  }
  require(text.find("![") == std::string::npos && text.find("](") == std::string::npos);
  require(text.find('`') == std::string::npos && text.find("<i") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string name(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 4096));
  const std::string text = shown_text(name, false);
  require_shown(text, "\n\t");
  require_no_command(text);
  require_shown(one_line(name), "");
  require_shown(markdown_text(name), "");
  require_shown(markdown_code(name), "");
  require_shown(workflow_message(name), "");
  require(workflow_property(name).find_first_of(":,\n") == std::string::npos);
  require(csv_cells(csv_text(name)).size() == 1);
  require(markup_escaped(name).find_first_of("<>\"") == std::string::npos);

  const guard::Report report = report_of(name);
  const std::string table = guard::render_table(report, {false, false, true, 80});
  require_no_command(shown_text(table, false));
  require_markdown(guard::render_markdown(report));
  require_shown(guard::render_junit(report), "\n\t");
  for (const std::string& line : split(guard::render_annotations(report), '\n'))
    require(line.empty() || starts_with(line, "::error ") || starts_with(line, "::warning "));
  return 0;
}
