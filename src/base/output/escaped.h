// SPDX-License-Identifier: Apache-2.0
// Escapes of the sinks in which names from files end up: terminal, Markdown and the commands of a
// GitHub job. Names are hostile: a kernel may be called "\x1b[2J" or "::error::". CSV is
// base/csv.h; HTML and XML are base/output/markup.h; JSON is base/json/json.h. Pure functions. [MT]
#pragma once

#include <string>
#include <string_view>

namespace purlin {

// For a terminal or a job's log: control characters, marks that turn the direction of text, and
// bytes that are no UTF-8 become \uXXXX, which is right within JSON too. `colors`: the colours of
// Terminal::paint stay. Line feeds and tabs stay. Workflow commands at the start of a line do not.
std::string shown_text(std::string_view text, bool colors);
// The same on one line, for a cell of a table. Colours stay: shown_text has the last word on them.
std::string shown_line(std::string_view text);
// The same without colours: for a value.
std::string one_line(std::string_view text);
// Only control characters: for data such as CSV, where "::" at the start of a line is a value.
std::string shown_data(std::string_view text);

// As text in Markdown of GitHub and GitLab, also within a table: no markup, link, mention or HTML.
std::string markdown_text(std::string_view text);
// The same for a name: as code, unless it is plain.
std::string markdown_code(std::string_view text);

// A message, or a property such as "title", of `::error …`.
std::string workflow_message(std::string_view text);
std::string workflow_property(std::string_view text);

}  // namespace purlin
