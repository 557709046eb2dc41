// SPDX-License-Identifier: Apache-2.0
// For tests: a ClickHouse server of its own. TODO
#pragma once
#include <string>
namespace purlin::store {
class ClickhouseServer {
 public:
  static ClickhouseServer& shared() {
    static ClickhouseServer server;
    return server;
  }
  bool is_running() const { return false; }
  std::string why() const { return "not yet"; }
  std::string new_database() { return ""; }
};
}  // namespace purlin::store
