// SPDX-License-Identifier: Apache-2.0
// The log of a training with a loss scale, as GradScaler, Apex and DeepSpeed have one: which steps
// were left out because their gradients were not finite, and what became of the scale. Lines are of
// any form; a line without a scale and without such a step counts for nothing. Pure functions over
// foreign text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace purlin::analyze {

struct TrainingLog {
  std::size_t lines = 0;                   // that name a scale or a skipped step
  std::size_t skipped = 0;                 // steps
  double first_scale = 0, last_scale = 0;  // 0: none was named
};

TrainingLog read_training_log(std::string_view text);
// "2 skipped steps, scale 65536 -> 16384: …"; "" where the log names neither.
std::string to_text(const TrainingLog& log);

}  // namespace purlin::analyze
