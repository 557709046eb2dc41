// SPDX-License-Identifier: Apache-2.0
// What a tuning parameter may be called, and what its value may be, where other programs get both.
//
// A program receives a config as compiler options, "-DNAME=VALUE" each, joined by spaces. So a name
// is an identifier, and a value is one word of a command line. Entries and programs that tune
// themselves are refused otherwise; of a spec, the winner is not stored. Pure functions. Failure:
// kInvalid, with what would do.
#pragma once

#include "base/status.h"
#include "model/expression/value.h"

#include <string_view>

namespace purlin {

// Letters, digits and '_', not starting with a digit, at most 128.
bool is_identifier(std::string_view name);

// Texts without spaces, quotes and other characters that a command line reads in its own way. Reals
// that no integer of 64 bits exceeds: JSON writes a larger integer as such a real.
Status check_parameter_value(std::string_view name, const Value& value);
// The names and the values of a config.
Status check_parameters(const Config& config);

}  // namespace purlin
