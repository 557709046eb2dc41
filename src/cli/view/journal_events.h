// SPDX-License-Identifier: Apache-2.0
// JournalEvents: the journals of tuning sessions that are under way, followed as they grow, as
// server-sent events (docs/formats/page.md). One owner, one thread. Cannot fail: a journal that
// cannot be read has nothing new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace purlin::cli {

class JournalEvents {
 public:
  struct Journal {
    std::string path;
    std::string document;   // its name on the page
    std::size_t known = 0;  // evaluations that the page has
  };
  explicit JournalEvents(std::vector<Journal> journals);
  // What came since the last call; "": nothing.
  std::string next();

 private:
  struct Followed {
    Journal journal;
    std::uint64_t at = 0;  // read so far
    std::size_t seen = 0;  // evaluations of it
  };
  static std::string next_of(Followed& followed);
  std::vector<Followed> followed_;
};

}  // namespace purlin::cli
