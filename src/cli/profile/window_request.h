// SPDX-License-Identifier: Apache-2.0
// Asks a server for a timeline of a node's captured processes, waits for it, and fetches it
// (docs/design/window-requests.md). Free functions. Failure: kInvalid (refused by server or node),
// and those of ServerClient.
#pragma once

#include "base/status.h"
#include "cli/frame/command.h"

#include <cstdint>
#include <string>

namespace purlin::cli {

struct WindowOrder {
  std::string server, node, job;
  std::int64_t pid = 0, length_ns = 0;
  double wait_s = 0;   // for the profile
  std::string output;  // its file; "" = the first digits of its hash
  bool json = false;
};

// The exit code: 3 where the node did not send it in time.
Result<int> request_window(Context& context, const WindowOrder& order);
// The requests that the server has, the newest first.
Result<int> list_windows(Context& context, const WindowOrder& order);

}  // namespace purlin::cli
