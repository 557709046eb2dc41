// SPDX-License-Identifier: Apache-2.0
// The worker's side of the protocol, inside `purlin worker`. Requests come on one descriptor,
// replies leave on another, one JSON document a line (docs/formats/worker.md).
//
// Ends when the requests end. A separate thread watches the pipe: if the parent dies while a kernel
// hangs, it ends the process, and its process group if the process leads one. Single-threaded
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

// The whole process: uses stdin and stdout for the protocol, redirects output of the driver or a
// compiler to stderr, and serves with the devices of gpu/registry.h.
int worker_main();
int worker_main(const OpenDevice& open_device);

}  // namespace purlin::measure
