// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/window_request.h"

#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/frame/answer.h"
#include "cli/frame/interrupt.h"
#include "fleet/client/server_client.h"
#include "fleet/percent.h"

#include <algorithm>
#include <memory>
#include <unistd.h>

namespace purlin::cli {
namespace {

constexpr std::int64_t kBetweenStatesNs = 1'000'000'000, kWindowLookNs = 50'000'000;

// The request may arrive twice, and counts once: the client chooses its number.
std::string window_id() {
  Random random(static_cast<std::uint64_t>(system_clock().wall_ns()) ^
                (static_cast<std::uint64_t>(::getpid()) << 40));
  return fmt::format("{:016x}{:016x}", random.next(),
                     static_cast<std::uint64_t>(system_clock().wall_ns()));
}

std::string line_of(const Json& window) {
  const std::string job = window["job"].as_string(), why = window["why"].as_string();
  return fmt::format("{} {}{}{}: {:g} s, {}{}{}", window["asked"].as_string(),
                     window["node"].as_string(), job.empty() ? "" : " job ", job,
                     window["length_s"].as_double(), window["state"].as_string(),
                     why.empty() ? "" : ": ", why);
}

bool is_over(const std::string& state) {
  return state == "arrived" || state == "refused" || state == "expired";
}

Result<Json> window_now(fleet::ServerClient& client, const std::string& id) {
  PURLIN_ASSIGN(const Json answer, client.get("/v1/windows?id=" + id));
  if (answer["windows"].items().empty())
    return error(Code::kNotFound, "{} has no request {}", client.server(), id);
  return answer["windows"].items().front();
}

// Until it is over, or the time is.
Result<Json> wait_for_window(Context& context, fleet::ServerClient& client, Json window,
                             double wait_s) {
  Clock& clock = system_clock();
  const std::int64_t end = clock.monotonic_ns() + static_cast<std::int64_t>(wait_s * 1e9);
  const std::string id = window["id"].as_string();
  std::string said;
  const Interrupt interrupt;
  while (!is_over(window["state"].as_string()) && clock.monotonic_ns() < end) {
    if (window["state"].as_string() != said)
      context.log.info("{}", said = window["state"].as_string());
    const std::int64_t next = std::min(end, clock.monotonic_ns() + kBetweenStatesNs);
    while (clock.monotonic_ns() < next && !Interrupt::requested()) clock.sleep_ns(kWindowLookNs);
    if (Interrupt::requested()) break;
    PURLIN_ASSIGN(window, window_now(client, id));
  }
  return window;
}

}  // namespace

Result<int> request_window(Context& context, const WindowOrder& order) {
  PURLIN_ASSIGN(const std::unique_ptr<fleet::ServerClient> client,
                fleet::ServerClient::open(order.server, system_clock()));
  PURLIN_ASSIGN(const Json asked,
                client->post(fmt::format("/v1/windows?id={}&node={}&job={}&pid={}&length_s={}",
                                         window_id(), fleet::percent_encoded(order.node),
                                         fleet::percent_encoded(order.job), order.pid,
                                         static_cast<double>(order.length_ns) * 1e-9)));
  PURLIN_ASSIGN(Json window, wait_for_window(context, *client, asked["window"], order.wait_s));
  const std::string state = window["state"].as_string();
  if (state == "refused")
    return error(Code::kInvalid, "node '{}' refuses: {}", order.node, window["why"].as_string());
  std::string text = line_of(window) + "\n";
  if (state == "arrived") {
    const std::string file = order.output.empty()
                                 ? window["sha256"].as_string().substr(0, 16) + ".plprof"
                                 : order.output;
    PURLIN_ASSIGN(const std::string bytes, client->bytes(window["url"].as_string()));
    PURLIN_TRY(write_atomic(file, bytes));
    window.set("file", file);
    text += fmt::format("next: purlin report {}\n", file);
  } else if (state != "expired") {
    text += fmt::format("next: purlin capture status --server {}\n", order.server);
  }
  answer(context, order.json, document_of("purlin.capture-window/1", {{"window", window}}), text);
  return state == "arrived" ? kExitOk : kExitInconclusive;
}

Result<int> list_windows(Context& context, const WindowOrder& order) {
  PURLIN_ASSIGN(const std::unique_ptr<fleet::ServerClient> client,
                fleet::ServerClient::open(order.server, system_clock()));
  PURLIN_ASSIGN(const Json windows,
                client->get("/v1/windows?node=" + fleet::percent_encoded(order.node)));
  std::string text;
  for (const Json& window : windows["windows"].items()) text += line_of(window) + "\n";
  answer(context, order.json, windows, text.empty() ? "no windows were requested\n" : text);
  return kExitOk;
}

}  // namespace purlin::cli
