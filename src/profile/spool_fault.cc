// SPDX-License-Identifier: Apache-2.0
#include "profile/spool_fault.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <unistd.h>

namespace purlin::profile {
namespace {

constexpr std::string_view kFaultProtocol = "purlin-spool/1 ";
constexpr std::string_view kFaultName = "purlin-spool:";
constexpr int kMaxErrno = 4095;

// The text before the next space, which `text` then begins behind.
std::string_view next_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <class Integer>
bool whole_number(std::string_view text, Integer& value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string to_text(const SpoolFault& fault) {
  return std::string(kFaultProtocol) + fault.layer + ' ' + std::to_string(fault.pid) + ' ' +
         std::to_string(fault.error);
}

bool parse_spool_fault(std::string_view text, SpoolFault& fault) {
  if (text.size() > kMaxSpoolFaultBytes || text.substr(0, kFaultProtocol.size()) != kFaultProtocol)
    return false;
  text.remove_prefix(kFaultProtocol.size());
  fault.layer = next_word(text);
  const bool numbers = whole_number(next_word(text), fault.pid) && whole_number(text, fault.error);
  return numbers && (fault.layer == "cuda" || fault.layer == "opencl") && fault.pid > 0 &&
         fault.error > 0 && fault.error <= kMaxErrno;
}

// The end of a spool's path is what differs; an address holds 107 characters.
socklen_t spool_fault_address(std::string_view spool, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t room = sizeof address.sun_path - 1 - kFaultName.size();
  if (spool.size() > room) spool.remove_prefix(spool.size() - room);
  char* const name = address.sun_path + 1;  // after the zero of an abstract name
  std::memcpy(name, kFaultName.data(), kFaultName.size());
  std::memcpy(name + kFaultName.size(), spool.data(), spool.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kFaultName.size() +
                                spool.size());
}

void send_spool_fault(std::string_view spool, const SpoolFault& fault) {
  const int out = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (out < 0) return;
  sockaddr_un address;
  const socklen_t size = spool_fault_address(spool, address);
  const std::string text = to_text(fault);
  (void)!::sendto(out, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                  reinterpret_cast<const sockaddr*>(&address), size);
  ::close(out);
}

}  // namespace purlin::profile
