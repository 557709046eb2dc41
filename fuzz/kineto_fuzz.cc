// SPDX-License-Identifier: Apache-2.0
// A datagram of any program to the daemon of --torch. What is taken as a message is the same bytes
// when it is written again.
#include "profile/torch/daemon.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace profile = purlin::profile;
  const std::string_view datagram(reinterpret_cast<const char*>(data), size);
  profile::KinetoMessage message, again;
  if (!profile::decode_kineto(datagram, message)) return 0;
  if (!profile::decode_kineto(profile::encode_kineto(message), again) ||
      again.type != message.type || again.payload != message.payload)
    std::abort();
  profile::KinetoRequest request;
  if (profile::decode_kineto_request(message.payload, request) && request.pid <= 0) std::abort();
  return 0;
}
