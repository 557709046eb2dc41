// SPDX-License-Identifier: Apache-2.0
// TorchDaemon: the daemon's side of libkineto's on-demand protocol, for `purlin profile --torch
// daemon` (docs/design/torch-hook.md, "The daemon"). PyTorch asks it for a configuration once a
// second. It answers with a request for one trace of the traced process after some seconds, and for
// each `purlin capture window --torch`. Traces and their notes go to the spool.
//
// Owner: one run of the launcher. A thread serves until stop(). A program is never made to wait: an
// answer is one datagram, sent from the socket that was asked.
#pragma once

#include "base/os/descriptor.h"
#include "base/status.h"
#include "profile/torch/torch_traces.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace purlin::profile {

// One datagram of the protocol: a type of up to 32 characters, and what follows.
struct KinetoMessage {
  std::string type, payload;
};
std::string encode_kineto(const KinetoMessage& message);
// False for anything else than one whole message.
bool decode_kineto(std::string_view datagram, KinetoMessage& message);

// What a process asks: its number, and whether its profiler is free.
struct KinetoRequest {
  std::int64_t pid = 0;
  bool is_free = false;
};
bool decode_kineto_request(std::string_view payload, KinetoRequest& request);

struct TorchDaemonOptions {
  TorchOptions torch;
  double settle_s = 10;  // from the first request of a process to its trace
  double seconds = 1;    // of a trace without optimizer steps
  int steps = 10;
  int tries = 3;  // of a trace that has no kernels
};

class TorchDaemon {
 public:
  static Result<std::unique_ptr<TorchDaemon>> start(const std::string& spool,
                                                    const TorchDaemonOptions& options);
  ~TorchDaemon() { stop(); }
  TorchDaemon(const TorchDaemon&) = delete;
  TorchDaemon& operator=(const TorchDaemon&) = delete;

  // What the program's environment needs.
  std::map<std::string, std::string> variables() const;
  // Ends the thread, after the last traces were taken.
  void stop();

 private:
  struct Client {
    std::int64_t first_ns = 0;
    int rank = -1;       // -1: none
    int made = 0;        // traces requested
    int tries = 0;       // of the present one
    bool open = false;   // its file is awaited
    bool due = false;    // a trace is to be requested
    bool done = false;   // has had its trace without a request
    std::string wanted;  // the path that was sent
  };

  TorchDaemon(std::string spool, std::string folder, int socket, const TorchDaemonOptions& options);
  void serve();
  void receive();
  std::string answer(const KinetoRequest& request);
  std::string configuration(std::int64_t pid, Client& client) const;
  void take_requests();
  void take_traces();
  void keep(std::int64_t pid, Client& client, const std::string& trace);
  bool is_traced(const Client& client) const;
  void note(std::int64_t pid, const Client& client, const std::string& trace,
            const std::string& reason) const;

  const std::string spool_, folder_;
  const TorchDaemonOptions options_;
  Descriptor socket_;
  std::map<std::int64_t, Client> clients_;
  bool claimed_ = false;  // a process of the run has its trace
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace purlin::profile
