// SPDX-License-Identifier: Apache-2.0
#include "base/output/terminal.h"

#include "base/files.h"
#include "base/output/escaped.h"
#include "base/text.h"
#include "base/time.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <langinfo.h>
#include <limits>
#include <locale.h>
#include <numeric>
#include <optional>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace purlin {
namespace {

constexpr int kPlainWidth = 100;
constexpr int kLeastWidth = 20;  // less is no width of a terminal
// What columns shrink to, step by step until the table fits.
struct ColumnLimit {
  std::size_t least;
  bool numbers;  // those of numbers, too
  bool words;    // not so far that a word of up to kWord characters breaks
};
constexpr std::size_t kWord = 16;
constexpr ColumnLimit kColumnLimits[] = {{16, false, true}, {8, false, true},  {8, true, true},
                                         {8, false, false}, {10, true, false}, {8, true, false},
                                         {4, true, false}};
constexpr std::string_view kGap = "  ";
// Of a cell, where those to its right are text, too: else they stand below their row.
constexpr std::size_t kMostLines = 3;
constexpr std::string_view kBelow = "    ";

// The environment names a locale; only the C library knows its encoding, and whether it is there.
bool locale_is_utf8() {
  const locale_t locale = ::newlocale(LC_CTYPE_MASK, "", nullptr);
  if (locale == nullptr) return false;
  const bool utf8 = std::string_view(::nl_langinfo_l(CODESET, locale)) == "UTF-8";
  ::freelocale(locale);
  return utf8;
}

std::optional<int> width_of(int fd, bool tty) {
  if (const auto columns = parse_int(environment_variable("COLUMNS"));
      columns && *columns > kLeastWidth && *columns <= std::numeric_limits<int>::max())
    return static_cast<int>(*columns);
  winsize size{};
  if (tty && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > kLeastWidth) return size.ws_col;
  return std::nullopt;
}

}  // namespace

Terminal Terminal::of(std::FILE* stream, ColorMode mode) {
  const int fd = ::fileno(stream);
  const bool tty = ::isatty(fd) != 0;
  bool color = tty && environment_variable("TERM") != "dumb";
  if (!environment_variable("CLICOLOR_FORCE").empty()) color = true;
  if (!environment_variable("NO_COLOR").empty()) color = false;
  if (mode == ColorMode::kAlways) color = true;
  if (mode == ColorMode::kNever) color = false;
  const std::optional<int> width = width_of(fd, tty);
  return {tty, color, locale_is_utf8(), width.value_or(kPlainWidth), tty || width.has_value()};
}

std::string Terminal::paint(Style style, std::string_view text) const {
  constexpr const char* kCodes[] = {"", "1", "2", "31", "32", "33", "34", "36"};
  if (!color_ || style == Style::kPlain || text.empty()) return std::string(text);
  return "\x1b[" + std::string(kCodes[static_cast<int>(style)]) + "m" + std::string(text) +
         "\x1b[0m";
}

std::string Terminal::bar(double share, int cells) const {
  share = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0);
  std::string out;
  if (!utf8_) {
    out.assign(static_cast<std::size_t>(std::lround(share * cells)), '#');
    return out;
  }
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(share * cells * 8));
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  return out + kEighths[eighths % 8];
}

void Table::row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = shown_line(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::natural_widths() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(visible_width(column.title));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], visible_width(row[i]));
  return widths;
}

std::vector<std::size_t> Table::longest_words(std::size_t columns) const {
  std::vector<std::size_t> longest(columns, 0);
  const auto count = [&](std::size_t column, std::string_view cell) {
    for (const std::string& word : split(cell, ' '))
      longest[column] = std::max(longest[column], std::min(visible_width(word), kWord));
  };
  for (std::size_t i = 0; i < columns; ++i) {
    count(i, columns_[i].title);
    for (const auto& row : rows_)
      if (i < row.size()) count(i, row[i]);
  }
  return longest;
}

// Takes from the widest column, again and again: short cells stay whole. Numbers wrap last.
void Table::fit(std::vector<std::size_t>& widths, std::size_t room) const {
  if (widths.empty()) return;
  std::size_t all =
      std::accumulate(widths.begin(), widths.end(), kGap.size() * (widths.size() - 1));
  if (all <= room) return;
  const std::vector<std::size_t> words = longest_words(widths.size());
  for (const ColumnLimit& limit : kColumnLimits) {
    while (all > room) {
      std::size_t* widest = nullptr;
      for (std::size_t i = 0; i < widths.size(); ++i) {
        const std::size_t least = std::max(limit.least, limit.words ? words[i] : 0);
        if ((limit.numbers || columns_[i].align == Align::kLeft) && widths[i] > least &&
            (widest == nullptr || widths[i] > *widest))
          widest = &widths[i];
      }
      if (widest == nullptr) break;
      --*widest;
      --all;
    }
  }
}

std::vector<std::size_t> Table::widths_in(std::size_t room) const {
  std::vector<std::size_t> widths = natural_widths();
  const std::vector<std::size_t> natural = widths;
  fit(widths, room);
  std::size_t below = widths.size();
  for (std::size_t i = widths.size(); i-- > 1 && columns_[i].align == Align::kLeft;)
    if (natural[i] > kMostLines * widths[i]) below = i;
  if (below < widths.size()) {
    widths = natural;
    widths.resize(below);
    fit(widths, room);
  }
  return widths;
}

std::string Table::render(const Terminal& terminal, std::string_view indent) const {
  auto room = static_cast<std::size_t>(std::max(terminal.width(), 1));
  room -= std::min(room, visible_width(indent));
  const std::vector<std::size_t> widths = terminal.bounded() ? widths_in(room) : natural_widths();
  std::string out;
  const auto row_of = [&](const std::vector<std::string>& cells, Style style) {
    const std::size_t used = std::min(cells.size(), widths.size());
    std::vector<std::vector<std::string>> lines(used);
    std::size_t height = 1;
    for (std::size_t i = 0; i < used; ++i) {
      lines[i] = visible_width(cells[i]) > widths[i] ? wrap_columns(cells[i], widths[i])
                                                     : std::vector<std::string>{cells[i]};
      height = std::max(height, lines[i].size());
    }
    for (std::size_t y = 0; y < height; ++y) {
      std::string text(indent);
      for (std::size_t i = 0; i < used; ++i) {
        const std::string piece = y < lines[i].size() ? lines[i][y] : "";
        const std::size_t width = visible_width(piece);
        const std::string padding(widths[i] - std::min(widths[i], width), ' ');
        const std::string cell = terminal.paint(style, piece);
        text += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
        if (i + 1 < used) text += kGap;
      }
      while (!text.empty() && text.back() == ' ') text.pop_back();
      out += text + "\n";
    }
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  if (std::any_of(titles.begin(), titles.end(), [](const auto& title) { return !title.empty(); }))
    row_of(titles, Style::kBold);
  for (const auto& row : rows_) {
    row_of(row, Style::kPlain);
    for (std::size_t i = widths.size(); i < std::min(row.size(), columns_.size()); ++i) {
      if (row[i].empty()) continue;
      std::string_view margin = "  ";
      for (const std::string& line :
           wrap_columns(columns_[i].title + "  " + row[i], room - std::min(room, kBelow.size()))) {
        out += fmt::format("{}{}{}\n", indent, margin, line);
        margin = kBelow;
      }
    }
  }
  return out;
}

std::string prose_line(std::string_view text, const Terminal& terminal, std::string_view indent) {
  const std::string start(indent);
  const auto width = static_cast<std::size_t>(terminal.width());
  if (!terminal.bounded() || indent.size() + visible_width(text) <= width)
    return start + std::string(text) + "\n";
  const std::size_t taken = std::min(width, indent.size() + kGap.size());
  return start + join(wrap_columns(text, width - taken), "\n" + start + std::string(kGap)) + "\n";
}

void Progress::update(std::string_view text) {
  if (!enabled_) return;
  const std::int64_t now = system_clock().monotonic_ns();
  const std::int64_t interval = terminal_.interactive() ? 50'000'000 : 5'000'000'000;
  if (last_ns_ != 0 && now - last_ns_ < interval) return;
  last_ns_ = now;
  const std::string shown = shown_text(shown_line(text), terminal_.color());
  if (terminal_.interactive()) {
    const std::string line =
        elide_middle(shown, static_cast<std::size_t>(std::max(20, terminal_.width() - 1)));
    std::fprintf(stream_, "\r\x1b[K%s", line.c_str());
    drawn_ = true;
  } else {
    std::fprintf(stream_, "%s\n", shown.c_str());
  }
  std::fflush(stream_);
}

void Progress::phase(std::string_view text) {
  last_ns_ = 0;
  update(text);
}

void Progress::clear() {
  if (drawn_) {
    std::fprintf(stream_, "\r\x1b[K");
    std::fflush(stream_);
  }
  drawn_ = false;
}

}  // namespace purlin
