// SPDX-License-Identifier: Apache-2.0
// The worker's own side: what runs inside `purlin worker`. Requests come on one descriptor, replies
// leave on another, one JSON document a line (docs/formats/worker.md).
//
// Ends when the requests end. A parent that dies while a kernel hangs is noticed by a thread that
// watches the pipe; it then ends the process, and its group where it leads one. Single-threaded
// otherwise; failures become replies.
#pragma once

#include "base/status.h"
#include "gpu/device.h"

#include <functional>
#include <memory>
#include <string_view>

namespace purlin::measure {

using OpenDevice = std::function<Result<std::unique_ptr<gpu::Device>>(std::string_view)>;

// Serves until in_fd ends, or the device is lost. Returns the exit code.
int serve_worker(int in_fd, int out_fd, const OpenDevice& open_device);

// The whole process: takes stdin and stdout for the protocol, gives whatever the driver or a
// compiler prints to stderr, and serves with the devices of gpu/registry.h.
int worker_main();
int worker_main(const OpenDevice& open_device);

}  // namespace purlin::measure
