// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include "base/files.h"
#include "base/text.h"
#include "base/time.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace purlin {

Terminal Terminal::of(std::FILE* stream, ColorMode mode) {
  const int fd = ::fileno(stream);
  const bool tty = ::isatty(fd) != 0;
  bool color = tty && environment_variable("TERM") != "dumb";
  if (!environment_variable("CLICOLOR_FORCE").empty()) color = true;
  if (!environment_variable("NO_COLOR").empty()) color = false;
  if (mode == ColorMode::kAlways) color = true;
  if (mode == ColorMode::kNever) color = false;
  std::string locale = environment_variable("LC_ALL");
  if (locale.empty()) locale = environment_variable("LC_CTYPE");
  if (locale.empty()) locale = environment_variable("LANG");
  const bool utf8 =
      locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  int width = 100;
  winsize size{};
  if (tty && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) width = size.ws_col;
  return {tty, color, utf8, width};
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

std::size_t visible_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == 0x1b) {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((c & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

std::string Table::render(const Terminal& terminal, std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(visible_width(column.title));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], visible_width(row[i]));
  std::string out;
  auto line = [&](const std::vector<std::string>& cells, Style style) {
    std::string text(indent);
    for (std::size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      const std::string padding(widths[i] - visible_width(cells[i]), ' ');
      const std::string cell = terminal.paint(style, cells[i]);
      text += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
      if (i + 1 < cells.size()) text += "  ";
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  line(titles, Style::kBold);
  for (const auto& row : rows_) line(row, Style::kPlain);
  return out;
}

void Progress::update(std::string_view text) {
  if (!enabled_) return;
  const std::int64_t now = system_clock().monotonic_ns();
  const std::int64_t interval = terminal_.interactive() ? 50'000'000 : 5'000'000'000;
  if (last_ns_ != 0 && now - last_ns_ < interval) return;
  last_ns_ = now;
  if (terminal_.interactive()) {
    const std::string line =
        elide_middle(text, static_cast<std::size_t>(std::max(20, terminal_.width() - 1)));
    std::fprintf(stream_, "\r\x1b[K%s", line.c_str());
    drawn_ = true;
  } else {
    std::fprintf(stream_, "%.*s\n", static_cast<int>(text.size()), text.data());
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
