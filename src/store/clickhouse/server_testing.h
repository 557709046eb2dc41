// SPDX-License-Identifier: Apache-2.0
// For tests: a ClickHouse server from Debian's package on loopback, with its files in a temporary
// folder. PURLIN_TEST_CLICKHOUSE=http://HOST:PORT names a running one instead.
//
// It ends with the test program. Without the package, why() says what to install, and tests skip. A
// server that is installed and does not start fails them.
#pragma once

#include "base/files.h"
#include "base/os/process.h"
#include "base/text.h"
#include "base/time.h"
#include "store/clickhouse/client.h"

#include <arpa/inet.h>
#include <csignal>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <set>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace purlin::store {

// A port of loopback that no program uses now. Another program may take it. Each call gives
// another.
inline int free_port() {
  static std::set<int> given;
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int port = bound ? ntohs(address.sin_port) : 0;
  const int result = port == 0 || given.insert(port).second ? port : free_port();
  ::close(fd);
  return result;
}

class ClickhouseServer {
 public:
  static ClickhouseServer& shared() {
    static ClickhouseServer server;
    return server;
  }
  struct Settings {
    int tcp_port;      // 0: any
    std::string more;  // of the configuration
  };
  ClickhouseServer() : ClickhouseServer(Settings{0, ""}) {}
  explicit ClickhouseServer(const Settings& settings) {
    system_clock();  // Made before a static server, so that it outlives it.
    url_ = environment_variable("PURLIN_TEST_CLICKHOUSE");
    if (!url_.empty()) return;
    installed_ = file_exists("/usr/sbin/clickhouse-server");
    if (!installed_) {
      why_ = "no ClickHouse: ./dev setup clickhouse";
      return;
    }
    root_ = make_temporary_directory("purlin-clickhouse").value();
    more_ = settings.more;
    for (int tries = 0; tries < 5 && !is_running(); ++tries) {
      port_ = free_port();
      tcp_port_ = settings.tcp_port > 0 ? settings.tcp_port : free_port();
      start();
    }
  }
  ~ClickhouseServer() {
    stop(SIGKILL);
    if (!root_.empty()) (void)remove_tree(root_).is_ok();
  }
  ClickhouseServer(const ClickhouseServer&) = delete;
  ClickhouseServer& operator=(const ClickhouseServer&) = delete;

  bool is_missing() const { return !is_running() && !installed_; }
  bool is_running() const { return !url_.empty(); }
  const std::string& why() const { return why_; }
  int tcp_port() const { return tcp_port_; }
  std::string new_database() {
    return fmt::format("{}/purlin_{}_{}", url_, ::getpid(), ++databases_);
  }
  std::string database(const std::string& name) const { return url_ + "/" + name; }
  void stop(int signal) {
    if (!process_) return;
    process_->kill(signal);
    process_->wait(60);
    process_.reset();
  }
  // With the same ports. Returns at once if the server ends, such as where a port is taken.
  void start() {
    write_config();
    Process::Options options;
    options.argv = {"/usr/sbin/clickhouse-server", "--config-file=" + root_ + "/config.xml"};
    options.directory = root_;
    options.out = options.err = Process::Stream::kNull;
    Result<Process> process = Process::start(options);
    if (!process.is_ok()) {
      why_ = process.status().message();
      return;
    }
    process_.emplace(std::move(process).value());
    const std::string url = fmt::format("http://127.0.0.1:{}", port_);
    for (int i = 0; i < 600; ++i) {
      const Result<Client> client = Client::connect({url, "", "", "default", ""});
      if (client.is_ok()) {
        url_ = url;
        return;
      }
      why_ = client.status().message();
      if (const std::optional<Exit> end = process_->wait(0.1)) {
        why_ = "the server ended: " + end->text();
        process_.reset();
        return;
      }
    }
  }

 private:
  void write_config() const {
    const std::string config = fmt::format(
        "<yandex><logger><level>error</level><log>{0}/log</log><errorlog>{0}/errors</errorlog>"
        "</logger><http_port>{1}</http_port><tcp_port>{2}</tcp_port>"
        "<listen_host>127.0.0.1</listen_host><path>{0}/data/</path><tmp_path>{0}/tmp/</tmp_path>"
        "<user_files_path>{0}/files/</user_files_path>"
        "<format_schema_path>{0}/schemas/</format_schema_path><users_config>users.xml</"
        "users_config>"
        "<default_profile>default</default_profile><default_database>default</default_database>"
        "<mark_cache_size>268435456</mark_cache_size>{3}</yandex>",
        root_, port_, tcp_port_, more_);
    (void)write_atomic(root_ + "/config.xml", config).is_ok();
    (void)write_atomic(root_ + "/users.xml",
                       "<yandex><profiles><default/></profiles><users><default><password/>"
                       "<networks><ip>127.0.0.1</ip></networks><profile>default</profile>"
                       "<quota>default</quota></default></users><quotas><default/></quotas>"
                       "</yandex>")
        .is_ok();
  }

  std::string root_, url_, why_, more_;
  bool installed_ = false;
  int port_ = 0, tcp_port_ = 0, databases_ = 0;
  std::optional<Process> process_;
};

}  // namespace purlin::store
