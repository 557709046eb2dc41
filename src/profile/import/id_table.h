// SPDX-License-Identifier: Apache-2.0
// IdTable: from 64-bit hashes to small ids, by open addressing. What hashes alike is taken to be
// alike: among 10^7 texts that goes wrong once in 10^5 traces, and then one name is another.
// Thread-safety: none; a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::profile {

class IdTable {
 public:
  static constexpr std::uint32_t kAbsent = 0xFFFFFFFFu;

  IdTable() : slots_(1024) {}
  // The id under the hash; kAbsent for a new one, which then holds `id`.
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t id) {
    Slot& slot = at(hash);
    if (slot.id != kAbsent) return slot.id;
    slot = {hash, id};
    if (++used_ * 2 > slots_.size()) grow();
    return kAbsent;
  }
  std::uint32_t find(std::uint64_t hash) { return at(hash).id; }
  std::size_t size() const { return used_; }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t id = kAbsent;
  };
  Slot& at(std::uint64_t hash) {
    std::size_t i = static_cast<std::size_t>(hash) & (slots_.size() - 1);
    while (slots_[i].id != kAbsent && slots_[i].hash != hash) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.id != kAbsent) at(slot.hash) = slot;
  }
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace purlin::profile
