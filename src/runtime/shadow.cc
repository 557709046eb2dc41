// SPDX-License-Identifier: Apache-2.0
#include "runtime/shadow.h"

#include <cmath>

namespace purlin::runtime {

Shadow::Shadow(int every, std::uint64_t seed) : every_(every), random_(seed) {}

Duel* Shadow::duel(const std::string& entry, const std::string& record, const Variant* served,
                   const Variant* against) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Duel>& duel = duels_[{record, served, against}];
  if (duel == nullptr) duel = std::make_unique<Duel>(entry, record, served, against);
  return duel.get();
}

bool Shadow::claim(Plan& plan, std::uint64_t count) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  const std::uint64_t due = plan.next_shadow.load(std::memory_order_relaxed);
  if (count < due) return false;
  // The gap is uniform with mean `every`: a program's own rhythm must not pick the launches.
  const auto every = static_cast<std::uint64_t>(every_);
  plan.next_shadow.store(count + 1 + random_.below(2 * every - 1), std::memory_order_relaxed);
  return due != 0;  // 0: the plan is new, and only its first gap was drawn
}

bool Shadow::buffers_allow(const gpu::AppContext& device, const Choice& choice,
                           const gpu::AppLaunch& launch) const {
  const auto& buffers = choice.buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    for (std::size_t j = i + 1; j < buffers.size(); ++j)
      if (buffers[i].bytes > 0 && buffers[j].bytes > 0 &&
          (buffers[i].written || buffers[j].written) &&
          device.may_overlap(launch.values[i], buffers[i].bytes, launch.values[j],
                             buffers[j].bytes))
        return false;
  return true;
}

int Shadow::launch(gpu::AppContext& device, const Choice& choice, const gpu::AppLaunch& launch,
                   std::string_view shape) {
  const gpu::AppWork live{choice.variant->kernel.get(), &choice.shape};
  if (choice.rivals.empty() || !buffers_allow(device, choice, launch))
    return device.launch(live, launch);
  const Choice::Rival* rival = nullptr;
  bool served_first = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pending_.size() < kMaxPending) rival = &choice.rivals[random_.below(choice.rivals.size())];
    served_first = random_.below(2) == 0;
  }
  if (rival == nullptr) return device.launch(live, launch);
  const gpu::AppWork other{rival->variant->kernel.get(), &rival->shape};
  std::unique_ptr<gpu::AppTiming> timing;
  const int code = device.launch_shadowed(
      served_first ? std::array{live, other} : std::array{other, live}, live, launch, timing);
  if (timing != nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    rival->duel->shape = shape;
    pending_.push_back({std::move(timing), rival->duel, served_first});
  }
  return code;
}

std::vector<Defeat> Shadow::poll() {
  std::vector<Defeat> defeats;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(pending_, [&](Pending& pending) {
    const auto ms = pending.timing->poll();
    if (!ms) return false;
    if ((*ms)[0] <= 0 || (*ms)[1] <= 0) return true;  // the driver would not say
    const double log_ratio = std::log((*ms)[0] / (*ms)[1]);
    Duel& duel = *pending.duel;
    const std::uint64_t samples = duel.test.samples() + 1;
    if (duel.test.add(pending.served_first ? log_ratio : -log_ratio))
      defeats.push_back({duel.entry, duel.record, duel.served, duel.against, duel.shape,
                         duel.test.ratio(), samples});
    return true;
  });
  return defeats;
}

Shadow::Figures Shadow::figures(const Duel& duel) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {duel.test.samples(), duel.test.ratio()};
}

}  // namespace purlin::runtime
