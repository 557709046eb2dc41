// SPDX-License-Identifier: Apache-2.0
// What a stream can show: colour, width, and progress on one line.
//
// Colour follows --color, then NO_COLOR, then CLICOLOR_FORCE, then whether the stream is a
// terminal. The width follows COLUMNS, then the terminal. Thread-safety: a Terminal is immutable; a
// Progress belongs to one thread.
#pragma once

#include "base/output/columns.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kCyan };
enum class ColorMode { kAuto, kAlways, kNever };

class Terminal {
 public:
  static Terminal of(std::FILE* stream, ColorMode mode = ColorMode::kAuto);
  // A fixed terminal, for tests and files.
  Terminal(bool interactive, bool color, bool utf8, int width)
      : Terminal(interactive, color, utf8, width, interactive) {}

  bool interactive() const { return interactive_; }
  bool color() const { return color_; }
  bool utf8() const { return utf8_; }
  int width() const { return width_; }  // columns; 100 where nothing says how many
  // Whether lines must fit: on a terminal, or with COLUMNS. In a file, one row stays one line.
  bool bounded() const { return bounded_; }
  std::string paint(Style style, std::string_view text) const;
  // A horizontal bar for a share in [0, 1], `cells` wide, with eighths where UTF-8 is available.
  std::string bar(double share, int cells) const;

 private:
  Terminal(bool interactive, bool color, bool utf8, int width, bool bounded)
      : interactive_(interactive), color_(color), utf8_(utf8), bounded_(bounded), width_(width) {}

  bool interactive_, color_, utf8_, bounded_;
  int width_;
};

// Columns of text. Widths are those on the terminal, so painted cells line up. Where that is
// bounded and too narrow, the widest columns of text wrap, and last those of numbers, at the right.
// Words stay whole where that is possible.
// Last columns of text stand below their row, with titles, where one would take four lines or more.
// Without any title there is no line of titles.
class Table {
 public:
  enum class Align { kLeft, kRight };
  void column(std::string title, Align align = Align::kLeft) {
    columns_.push_back({std::move(title), align});
  }
  // Names from files come unchanged: a cell is one line, without control characters.
  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string render(const Terminal& terminal, std::string_view indent = "") const;

 private:
  struct Column {
    std::string title;
    Align align;
  };
  std::vector<std::size_t> natural_widths() const;
  std::vector<std::size_t> longest_words(std::size_t columns) const;
  void fit(std::vector<std::size_t>& widths, std::size_t room) const;
  std::vector<std::size_t> widths_in(
      std::size_t room) const;  // of the columns that stay in the row
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A line of prose. On a bounded terminal it continues on lines that are indented by two more.
std::string prose_line(std::string_view text, const Terminal& terminal,
                       std::string_view indent = "");

// A line that is redrawn in place on a terminal, and printed every few seconds elsewhere.
class Progress {
 public:
  Progress(std::FILE* stream, Terminal terminal, bool enabled)
      : stream_(stream), terminal_(terminal), enabled_(enabled) {}
  ~Progress() { clear(); }
  void update(std::string_view text);  // rate-limited
  void phase(std::string_view text);   // shown at once: what now begins may take long
  void clear();

 private:
  std::FILE* stream_;
  Terminal terminal_;
  bool enabled_;
  bool drawn_ = false;
  std::int64_t last_ns_ = 0;
};

}  // namespace purlin
