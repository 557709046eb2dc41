// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/kernel_arm.h"

#include "base/hash.h"

namespace purlin::guard {
namespace {

class KernelArm : public Arm {
 public:
  KernelArm(KernelArmOptions options, std::vector<KernelItem> items, Runner& runner)
      : options_(std::move(options)), runner_(runner) {
    for (KernelItem& item : items) {
      items_.push_back(item.item);
      by_item_.emplace(item.item, std::move(item));
    }
  }

  std::string label() const override { return options_.label; }
  Status prepare() override { return Status::ok(); }
  const std::vector<Item>& items() const override { return items_; }
  std::size_t most_per_launch() const override { return options_.most_per_launch; }

  std::string fingerprint() const override {
    FieldHasher hasher;
    for (const auto& [name, item] : by_item_)
      hasher.add(name.text()).add(item.code).add(item.target.config.text());
    for (const auto& [name, value] : options_.environment) hasher.add(name).add(value);
    return hasher.hex();
  }

  Json record() const override {
    Json list = Json::array();
    for (const Item& name : items_) {
      const KernelItem& item = by_item_.at(name);
      list.push(Json::object({{"kernel", name.kernel},
                              {"shape", name.shape},
                              {"spec", item.target.spec_path},
                              {"code", item.code},
                              {"config", to_json(item.target.config)}}));
    }
    Json record = Json::object({{"label", options_.label}, {"kernels", std::move(list)}});
    if (!options_.environment.empty()) {
      Json environment = Json::object();
      for (const auto& [name, value] : options_.environment) environment.set(name, value);
      record.set("environment", std::move(environment));
    }
    return record;
  }

  Result<Readings> launch(const std::vector<Item>& wanted) override { return run(wanted, false); }
  Result<Readings> rehearse(const std::vector<Item>& wanted) override { return run(wanted, true); }

 private:
  Result<Readings> run(const std::vector<Item>& wanted, bool verify) {
    std::vector<Target> targets;
    for (const Item& item : wanted)
      if (const KernelItem& kernel = by_item_.at(item); kernel.problem.is_ok())
        targets.push_back(kernel.target);
    std::vector<Result<ProcessReading>> results;
    if (!targets.empty()) results = runner_.run(targets, verify);
    auto next = results.begin();
    Readings readings;
    for (const Item& item : wanted) {
      ItemReading reading{item, by_item_.at(item).problem, {}};
      if (reading.status.is_ok()) {
        Result<ProcessReading> result = std::move(*next++);
        if (result.is_ok())
          reading.process = std::move(result).value();
        else if (result.status().code() == Code::kFailed)
          reading.status = result.status();
        else
          return result.status().with_context(item.text());
      }
      readings.push_back(std::move(reading));
    }
    return readings;
  }

  KernelArmOptions options_;
  Runner& runner_;
  std::vector<Item> items_;
  std::map<Item, KernelItem> by_item_;
};

}  // namespace

std::string Item::text() const {
  std::string text = kernel;
  if (!shape.empty()) text += " " + shape;
  if (!variant.empty()) text += " " + variant;
  return text;
}

std::unique_ptr<Arm> make_kernel_arm(KernelArmOptions options, std::vector<KernelItem> items,
                                     Runner& runner) {
  return std::make_unique<KernelArm>(std::move(options), std::move(items), runner);
}

}  // namespace purlin::guard
