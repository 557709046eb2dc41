// SPDX-License-Identifier: Apache-2.0
// Values as Nsight Compute prints them: numbers with separators of thousands and, in some locales,
// a decimal comma; units scaled for people ("Kbyte", "usecond", "cycle/nsecond"); metrics of the
// details page by label instead of name. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace purlin::profile {

// Which of '.' and ',' is the decimal separator, as far as one printed number tells: 0 where it
// does not ("1,024" is one thousand or one and a bit), or where the text is no number.
char decimal_separator(std::string_view text);
// The decimal separator of a file, from its values. A value that tells it counts most. Else the
// whole numbers decide: in ns, instructions or bytes, "117.344" has a separator of thousands. Else
// the separator of columns: spreadsheets take ';' where the comma is the decimal one.
class SeparatorVotes {
 public:
  explicit SeparatorVotes(char columns) : columns_(columns) {}
  void add(std::string_view metric_or_label, std::string_view unit, std::string_view value);
  char decimal() const;  // '.' where nothing tells

 private:
  char columns_;
  std::size_t commas_ = 0, points_ = 0, grouping_commas_ = 0, grouping_points_ = 0;
};

// "1,024" -> 1024, "4.30" -> 4.3; with a decimal comma "1.024,5" -> 1024.5. Also "12 (3; 4)", a
// total with its instances. nullopt for "n/a", "nan", "no data", "".
std::optional<double> parse_ncu_number(std::string_view text, char decimal);

// What a value in this unit is to be multiplied with to be in ncu's base unit: bytes, ns, Hz, and
// per second where it is per time. 1 for units without a scale.
double unit_factor(std::string_view unit);

// "Achieved Occupancy" -> "sm__warps_active.avg.pct_of_peak_sustained_active"; the unit tells
// namesakes apart. "" where the label is not known.
std::string_view metric_of_label(std::string_view label, std::string_view unit);

}  // namespace purlin::profile
