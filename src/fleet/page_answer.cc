// SPDX-License-Identifier: Apache-2.0
#include "fleet/page_answer.h"

#include "page/page.h"

namespace purlin::fleet {

std::optional<HttpAnswer> page_answer(const HttpHead& head) {
  if (head.target != "/" || (head.method != "GET" && head.method != "HEAD")) return std::nullopt;
  return HttpAnswer{200,
                    page::render_fleet(),
                    {{"Content-Security-Policy", page::fleet_policy()},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cache-Control", "no-cache"}},
                    "text/html; charset=utf-8"};
}

}  // namespace purlin::fleet
