// SPDX-License-Identifier: Apache-2.0
// `purlin view`: shows files as a page, in the browser.
#include "base/os/process.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/frame/interrupt.h"
#include "cli/view/page_files.h"
#include "fleet/http_server.h"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

namespace purlin::cli {
namespace {

constexpr std::int64_t kBetweenLooksNs = 100'000'000;  // for Ctrl-C

using PageHeaders = std::vector<std::pair<std::string, std::string>>;

// Answers requests for one page. Other sites cannot read it by a name that they let point here.
class ViewHandler : public fleet::HttpHandler {
 public:
  ViewHandler(const Context& context, std::vector<std::string> files, page::Page page)
      : context_(context), files_(std::move(files)), page_(std::move(page)) {}
  void set_port(std::uint16_t port) { port_ = port; }

  std::optional<fleet::HttpAnswer> early(const fleet::HttpHead& head) override {
    const std::string_view host = head.header("host");
    if (host != fmt::format("127.0.0.1:{}", port_) && host != fmt::format("localhost:{}", port_))
      return plain(403, "this page is for this machine only");
    if (head.method != "GET" && head.method != "HEAD") return plain(405, "only GET");
    return std::nullopt;
  }
  fleet::HttpAnswer answer(const fleet::HttpHead& head, const std::string&) override {
    const std::string_view path = std::string_view(head.target).substr(0, head.target.find('?'));
    const std::lock_guard lock(mutex_);
    if (path == "/") {
      const Result<std::string> shell = page::render_shell(page_);
      if (!shell.is_ok()) return plain(500, shell.status().message());
      return {200, shell.value(), headers(page::served_policy()), "text/html; charset=utf-8"};
    }
    if (head.target.find("?live") != std::string::npos) read_again();
    const Result<std::optional<page::Served>> found = page::serve(page_, path.substr(1));
    if (!found.is_ok()) return plain(500, found.status().message());
    if (!found.value()) return plain(404, "not found");
    PageHeaders all = headers(found.value()->policy);
    if (found.value()->gzipped) all.emplace_back("Content-Encoding", "gzip");
    return {200, found.value()->body, std::move(all), found.value()->content_type};
  }
  void answered(const fleet::HttpHead&, const fleet::HttpAnswer&, std::optional<double>) override {}

 private:
  static PageHeaders headers(const std::string& policy) {
    return {{"Content-Security-Policy", policy},
            {"X-Content-Type-Options", "nosniff"},
            {"Referrer-Policy", "no-referrer"},
            {"Cross-Origin-Resource-Policy", "same-origin"},
            {"Cache-Control", "no-store"}};
  }
  static fleet::HttpAnswer plain(int status, const std::string& text) {
    return {status, text + "\n", headers("default-src 'none'"), "text/plain; charset=utf-8"};
  }
  // A tuning session that is under way has grown since.
  void read_again() {
    if (Result<page::Page> again = page_of_files(context_, files_); again.is_ok())
      page_ = std::move(again).value();
  }

  const Context& context_;
  const std::vector<std::string> files_;
  std::mutex mutex_;
  page::Page page_;  // under the mutex
  std::uint16_t port_ = 0;
};

// The user's browser, where there is one; BROWSER as other tools read it.
bool open_browser(const std::string& url) {
  const char* browser = std::getenv("BROWSER");
  Process::Options options;
  options.argv = {browser != nullptr && *browser != '\0' ? browser : "xdg-open", url};
  options.out = options.err = Process::Stream::kNull;
  Result<Process> opened = Process::start(options);
  if (!opened.is_ok()) return false;
  const std::optional<Exit> exit = opened.value().wait(5);
  return !exit || exit->ok();
}

class View : public Command {
 public:
  std::string_view name() const override { return "view"; }
  std::string_view summary() const override { return "Show profiles and results in the browser"; }
  VerbText text() const override {
    return {
        .description =
            "Opens one page with these views: overview, kernels, roofline, timeline and advice of "
            "a profile, the comparison of several profiles with the first, a tuning run, and "
            "verdicts of the guard. It reads profiles of Purlin and of other tools, and Purlin's "
            "own JSON documents, histories and journals.",
        .more =
            "The page is served on this machine only, until Ctrl-C. `purlin report --html` and "
            "`purlin diff --html` write the same page as one file. A session of `purlin tune` that "
            "is under way is shown live: give its folder.",
        .examples = {{"purlin view run.plprof"},
                     {"purlin view before.json.gz after.json.gz"},
                     {"purlin view --no-open tuned.json verdict.json pairs.jsonl"}},
        .exit_codes = {{0, "Stopped"}, {2, "A file cannot be read, or the port is taken"}},
        .see = {"docs/guide/page.md", "docs/formats/page.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "Profiles, or JSON documents of Purlin");
    flags.option("--port", port_, "Port of this machine, 0 for a free one");
    flags.flag("--no-open", no_open_, "Print the address, and open no browser");
    flags.flag("--json", json_,
               {"Print the address as one JSON document", "The schema is purlin.view/1."});
  }

  Result<int> run(Context& context) override {
    if (port_ < 0 || port_ > 65535)
      return error(Code::kInvalid, "--port {} is not a port: 0 to 65535", port_);
    PURLIN_ASSIGN(page::Page page, page_of_files(context, files_));
    ViewHandler handler(context, files_, std::move(page));
    const Interrupt interrupt;
    fleet::HttpServerOptions options;
    options.port = static_cast<std::uint16_t>(port_);
    options.handler_threads = 2;
    PURLIN_ASSIGN(const std::unique_ptr<fleet::HttpServer> server,
                  fleet::HttpServer::start(options, handler));
    handler.set_port(server->port());
    const std::string url = server->url() + "/";
    answer(context, json_, document_of("purlin.view/1", {{"url", url}}),
           fmt::format("the page is at {} until Ctrl-C\n", url));
    std::fflush(context.out);
    if (!no_open_ && !open_browser(url))
      context.log.warn("no browser could be started: open {}", url);
    while (!Interrupt::requested()) system_clock().sleep_ns(kBetweenLooksNs);
    server->stop(1);
    return kExitOk;
  }

 private:
  std::vector<std::string> files_;
  int port_ = 0;
  bool no_open_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_view_command() { return std::make_unique<View>(); }

}  // namespace purlin::cli
