// SPDX-License-Identifier: Apache-2.0
// Node: the parts of a collector, put together: what it reads, keeps and sends.
//
// One owner. collector() and shipper() are each for one thread; facts() is [MT]. Failure of open():
// kUnavailable (another collector has the folder, no libcurl), kIo.
#pragma once

#include "base/files.h"
#include "fleet/collector/collect_status.h"
#include "fleet/collector/collector.h"
#include "fleet/collector/place_labels.h"
#include "fleet/collector/raw_spool.h"
#include "fleet/collector/shipper.h"
#include "fleet/collector/window_taker.h"

#include <memory>
#include <optional>
#include <string>

namespace purlin::fleet {

struct NodeOptions {
  CollectorOptions collector;
  BatchSpoolOptions spool;
  std::uint64_t raw_bytes_per_hour = RawSpoolOptions().bytes_per_hour;  // 0: none are sent
  std::int64_t longest_window_ns = WindowTakerOptions().longest_ns;     // 0: refused
  PlaceLabelsOptions places;
  std::string server, token_file;
  double period_s = 10;
};

class Node {
 public:
  // Clock and log outlive it.
  static Result<std::unique_ptr<Node>> open(NodeOptions options, Clock& clock, Log& log);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Collector& collector() { return *collector_; }
  Shipper& shipper() { return *shipper_; }
  BatchSpool& spool() { return *spool_; }
  RawSpool& raws() { return *raws_; }
  WindowTaker& windows() { return *windows_; }
  CollectFacts facts() const;

 private:
  Node(NodeOptions options, FileLock lock) : options_(std::move(options)), lock_(std::move(lock)) {}
  const NodeOptions options_;
  const FileLock lock_;
  std::unique_ptr<BatchSpool> spool_;
  std::unique_ptr<RawSpool> raws_;
  std::unique_ptr<WindowTaker> windows_;
  std::unique_ptr<blobs::HttpClient> kubelet_;
  std::unique_ptr<PlaceLabels> places_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<Shipper> shipper_;
};

}  // namespace purlin::fleet
