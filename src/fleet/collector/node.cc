// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/node.h"

#include "base/text.h"
#include "blobs/curl_http.h"
#include "blobs/server_blobs.h"
#include "fleet/collector/ask_capture.h"

#include <algorithm>
#include <unistd.h>

namespace purlin::fleet {
namespace {

std::string machine_boot() {
  return std::string(trim(read_file("/proc/sys/kernel/random/boot_id").value_or("unknown")));
}

// Of nodes that start together, each another one.
std::uint64_t seed_of(Clock& clock) {
  return static_cast<std::uint64_t>(clock.wall_ns()) ^
         (static_cast<std::uint64_t>(::getpid()) << 32);
}

WindowTakerOptions window_options(const NodeOptions& node) {
  WindowTakerOptions options;
  options.path = join_path(node.spool.directory, "windows.json");
  options.node = node.collector.node;
  options.longest_ns = node.longest_window_ns;
  options.record = [](const LiveCapture& live, std::int64_t length_ns) {
    return ask_capture(live.capture.folder, live.pid, live.capture.owner,
                       {profile::ControlRequest::Verb::kWindow, length_ns});
  };
  return options;
}

// A wrong address or token would fail in every period.
Status check_addresses(NodeOptions& options) {
  if (!options.server.empty()) {
    PURLIN_ASSIGN(options.server, blobs::parse_server_address(options.server));
  }
  if (!options.token_file.empty())
    PURLIN_TRY(blobs::read_token(options.token_file).status().with_context("--token-file"));
  const PlaceLabelsOptions& places = options.places;
  if (!places.kubelet_url.empty())
    PURLIN_TRY(
        blobs::parse_server_address(places.kubelet_url).status().with_context("--kubelet-url"));
  if (places.kubelet_token_file.empty()) return Status::ok();
  return blobs::read_token(places.kubelet_token_file, PlaceLabelsOptions::kMaxTokenBytes)
      .status()
      .with_context("--kubelet-token-file");
}

}  // namespace

Result<std::unique_ptr<Node>> Node::open(NodeOptions options, Clock& clock, Log& log) {
  PURLIN_TRY(check_addresses(options));
  const std::string folder = options.spool.directory;
  PURLIN_TRY(make_directories_durably(folder));
  Result<FileLock> lock = FileLock::acquire(join_path(folder, ".lock"), 0);
  if (lock.status().code() == Code::kUnavailable)
    return error(Code::kUnavailable, "another collector uses '{}'; give this one its own --state",
                 folder);
  if (!lock.is_ok()) return lock.status();
  std::unique_ptr<Node> node(new Node(std::move(options), std::move(lock).value()));
  PURLIN_ASSIGN(node->spool_, BatchSpool::open(node->options_.spool, machine_boot()));
  RawSpoolOptions raws;
  raws.directory = join_path(folder, "raw");
  raws.bytes_per_hour = node->options_.raw_bytes_per_hour;
  raws.max_bytes = std::min(raws.max_bytes, node->options_.spool.max_bytes / 4);
  PURLIN_ASSIGN(node->raws_, RawSpool::open(std::move(raws)));
  PURLIN_ASSIGN(node->windows_, WindowTaker::open(window_options(node->options_), *node->raws_));
  if (node->spool_->was_lost())
    log.warn("'{}' was damaged: captures are read from their present ends on", folder);
  PURLIN_ASSIGN(node->kubelet_, blobs::make_curl_http());
  node->places_ = std::make_unique<PlaceLabels>(node->options_.places, node->kubelet_.get(), clock);
  CollectorOptions collector = node->options_.collector;
  if (!collector.stop)
    collector.stop = [](const FoundCapture& capture, std::int64_t pid) {
      return ask_capture(capture.folder, pid, capture.owner,
                         {profile::ControlRequest::Verb::kStop, 0});
    };
  collector.raws = node->raws_.get();
  collector.windows = node->windows_.get();
  node->collector_ =
      std::make_unique<Collector>(std::move(collector), *node->spool_, *node->places_, clock, log);
  ShipperOptions to;
  to.server = node->options_.server;
  to.raws = node->raws_.get();
  to.windows = node->windows_.get();
  if (const std::string file = node->options_.token_file; !file.empty())
    to.token = [file] { return blobs::read_token(file).value_or(""); };
  PURLIN_ASSIGN(std::unique_ptr<blobs::HttpClient> http, blobs::make_curl_http());
  node->shipper_ = std::make_unique<Shipper>(std::move(to), std::move(http), *node->spool_, clock,
                                             log, seed_of(clock));
  return node;
}

CollectFacts Node::facts() const {
  return {collector_->state(), spool_->totals(),   raws_->totals(),
          windows_->counts(),  shipper_->counts(), options_.period_s};
}

}  // namespace purlin::fleet
