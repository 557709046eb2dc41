// SPDX-License-Identifier: Apache-2.0
// The advice for people: the verdict, then each intervention with what it saves, what shows it and
// how it is done.
#include "analyze/advise/advice.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr double kLittleJudged = 0.2;  // of the kernel time
constexpr std::size_t kShownPlan = 10;
constexpr std::size_t kKernelsShown = 4, kShownAlerts = 8, kShownStalls = 8;
constexpr std::size_t kAlikeShown = 2;

std::string percents(const Interval3& share) {
  return fmt::format("{:.0f}% ({:.0f} to {:.0f})", 100 * share.mid, 100 * share.low,
                     100 * share.high);
}

std::string times(const Interval3& ns, const Unit& unit) {
  const auto signed_ns = [](double value) {
    return value < 0 ? "-" + short_ns(-value) : short_ns(value);
  };
  return fmt::format("{} ({} to {}){}", signed_ns(ns.mid), signed_ns(ns.low), signed_ns(ns.high),
                     unit.kind == "step" ? " a step" : "");
}

std::string record_in_words(const TrackRecord& record) {
  std::string out = fmt::format(
      "{} of this rule, {} in the interval, measured {:.2f} of what was predicted",
      counted(static_cast<double>(record.outcomes), "outcome"), record.inside, record.median_ratio);
  return record.factor ? out + "; the interval is theirs" : out;
}

class AdviceRenderer {
 public:
  AdviceRenderer(const Advice& advice, const Terminal& terminal)
      : advice_(advice), terminal_(terminal) {}

  std::string full(int top) {
    paragraph(Style::kBold,
              ">> " + spaced_words(advice_.verdict) + ": " + clean(advice_.verdict_text), "");
    levels();
    tensor_cores();
    base();
    if (advice_.partial)
      paragraph(
          Style::kRed,
          "PARTIAL PROFILE: it was damaged or cut short. Results cover the remaining part only.",
          "");
    if (!advice_.nothing.empty()) {
      out_ += "\n";
      paragraph(Style::kPlain, std::string(nothing_of()) + ": " + advice_.nothing + ".", "");
    }
    const std::size_t all = advice_.interventions.size();
    const std::size_t shown = top > 0 ? std::min(all, static_cast<std::size_t>(top)) : all;
    changes(shown);
    if (shown < all)
      out_ +=
          terminal_.paint(Style::kDim, fmt::format("\n{} more; --top 0 shows all\n", all - shown));
    if (all > 1) {
      out_ += "\n";
      paragraph(Style::kDim,
                "Savings do not add up: each applies to the program as recorded. Apply one, record "
                "again, and run advise again.",
                "");
    }
    for (const UnknownRoof& one : advice_.unknown_roofs) unknown_roof(one);
    plan();
    stalls();
    bounds();
    no_gain();
    hardware();
    lists();
    alerts();
    checklist();
    notes();
    return std::move(out_);
  }

 private:
  // What is not known is no reason to change nothing; a trade is something.
  const char* nothing_of() const {
    if (!advice_.unknown_roofs.empty() || advice_.judged_share < kLittleJudged)
      return "No saving can be estimated";
    const bool trades =
        std::any_of(advice_.trades.begin(), advice_.trades.end(),
                    [](const Intervention& trade) { return trade.saved_share.mid > 0; });
    return trades ? "Nothing to recommend except a trade" : "Nothing to recommend";
  }
  // The first ones by their number, and all trades, by their places.
  void changes(std::size_t shown) {
    auto trade = advice_.trades.begin();
    const auto trades_before = [&](std::size_t place) {
      for (; trade != advice_.trades.end() && trade->place < place; ++trade)
        intervention("trade: ", *trade);
    };
    for (std::size_t i = 0; i < shown; ++i) {
      trades_before(advice_.interventions[i].place);
      intervention(fmt::format("{}. ", i + 1), advice_.interventions[i]);
    }
    trades_before(advice_.interventions.size() + advice_.trades.size() + 1);
  }
  std::size_t width() const { return text_width(terminal_); }
  void paragraph(Style style, std::string_view text, std::string_view indent) {
    out_ += painted(style, text, indent, terminal_);
  }
  // "  key       text", folded under the text.
  void entry(std::string_view key, std::string_view text, Style style = Style::kPlain) {
    constexpr std::size_t kKey = 14;
    bool first = true;
    for (const std::string& line : split(fold(text, "", width() - kKey), '\n')) {
      if (line.empty()) continue;
      std::string head = first ? fmt::format("  {:<{}}", key, kKey - 2) : std::string(kKey, ' ');
      out_ += terminal_.paint(Style::kDim, head) + terminal_.paint(style, line) + "\n";
      first = false;
    }
  }

  void levels() {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < kLossLevels; ++i)
      if (advice_.levels[i] >= 0.005)
        parts.push_back(fmt::format("{} {:.0f}%", spaced_words(to_text(static_cast<LossLevel>(i))),
                                    100 * advice_.levels[i]));
    if (!parts.empty()) paragraph(Style::kPlain, "time by level: " + join(parts, ", "), "");
  }

  // What could run on the tensor cores, and what does.
  void tensor_cores() {
    const TensorShares& tensor = advice_.tensor;
    if (tensor.eligible < 0.005) return;
    const double unknown = std::max(0.0, tensor.eligible - tensor.used - tensor.idle);
    std::string text = fmt::format(
        "tensor cores: {:.0f}% of the kernel time is eligible (products, convolutions, attention), "
        "{:.0f}% runs on them, {:.0f}% does not",
        100 * tensor.eligible, 100 * tensor.used, 100 * tensor.idle);
    if (unknown >= 0.005) text += fmt::format(", {:.0f}% is not known", 100 * unknown);
    paragraph(Style::kPlain, text, "");
  }

  // The order to do them in, with what is left of each after those before it.
  void plan() {
    if (advice_.plan.size() < 2) return;
    out_ += "\n" + terminal_.paint(Style::kBold, "order of work") + "\n";
    for (std::size_t i = 0; i < std::min(kShownPlan, advice_.plan.size()); ++i) {
      const PlanStep& step = advice_.plan[i];
      const Intervention& one = advice_.interventions[step.intervention];
      std::string text = fmt::format("step {}: {}, ", i + 1, one.id);
      if (!one.kernels.empty()) text += clean(elide_middle(one.kernels[0], 40)) + ", ";
      text += step.obsolete_after > 0
                  ? fmt::format("obsolete after step {}: {:.1f}% left", step.obsolete_after,
                                100 * step.saved_share)
                  : fmt::format("{:.1f}% on top of the steps before; {:.1f}% for a day of work",
                                100 * step.saved_share, one.roi);
      paragraph(Style::kPlain, "- " + text, "  ");
    }
    std::map<std::string_view, int> portable;
    for (const Intervention& one : advice_.interventions) ++portable[one.portability];
    std::vector<std::string> parts;
    for (const auto& [kind, count] : portable) parts.push_back(fmt::format("{} {}", count, kind));
    paragraph(Style::kDim, "- portability: " + join(parts, ", "), "  ");
  }

  void base() {
    const Unit& unit = advice_.unit;
    std::string text;
    if (unit.kind == "step") {
      text = fmt::format("a step takes {} as recorded{}", short_ns(unit.recorded_ns), apart(unit));
    } else if (unit.kind == "run") {
      text = fmt::format("the run takes {} as recorded", short_ns(unit.recorded_ns));
    } else {
      text = fmt::format("kernels take {}", short_ns(unit.recorded_ns));
    }
    const double added = unit.recorded_ns - unit.baseline_ns.mid;
    if (added > 0.01 * unit.recorded_ns)
      text +=
          fmt::format(", about {} ({} to {}) without the recorder", short_ns(unit.baseline_ns.mid),
                      short_ns(unit.baseline_ns.low), short_ns(unit.baseline_ns.high));
    if (unit.kind != "kernel_time")
      text += fmt::format(", the device works {}", short_ns(unit.busy_ns));
    paragraph(Style::kPlain, text, "");
    if (advice_.replay) paragraph(Style::kPlain, replay_line(*advice_.replay), "");
    if (!advice_.critical_path.empty()) paragraph(Style::kPlain, critical_line(), "");
  }

  // The report's mean step goes from the begin of a step to its end.
  static std::string apart(const Unit& unit) {
    constexpr double kNotable = 0.05;
    const double between = unit.recorded_ns - unit.mean_step_ns;
    if (unit.mean_step_ns <= 0 || std::abs(between) < kNotable * unit.mean_step_ns) return "";
    return between > 0 ? fmt::format(" ({} in the steps, and {} between them)",
                                     short_ns(unit.mean_step_ns), short_ns(between))
                       : fmt::format(" ({} with the one-off gaps)", short_ns(unit.mean_step_ns));
  }

  static std::string replay_line(const ReplayQuality& q) {
    std::string text = fmt::format("replay of {}: constant delays miss it by {:.1f}%",
                                   counted(q.steps, "step"), 100 * q.constant_error);
    if (q.step_spread > 0) text += fmt::format(", steps differ by {:.1f}%", 100 * q.step_spread);
    if (q.unlinked > 0) text += fmt::format(", {:.1f}% of the work has no call", 100 * q.unlinked);
    if (q.residuals > 0)
      text += fmt::format(", {:.1f}% of it began late for no known reason", 100 * q.residuals);
    if (q.unrecovered > 0)
      text += fmt::format(", {:.0f} of {} wait for unknown work", q.unrecovered,
                          counted(q.waits, "wait"));
    if (q.lower_confidence > 0) text += "; confidence is lower for it";
    return text;
  }

  std::string critical_line() const {
    constexpr std::size_t kNamed = 5;
    std::vector<std::string> parts;
    for (const CriticalWork& one : advice_.critical_path) {
      if (parts.size() == kNamed) break;
      // The host's time up to a call may lie in its op, or before that.
      const char* const before = one.kind == "host time" ? " before " : " ";
      parts.push_back(
          fmt::format("{:.0f}% {}{}", 100 * one.share, one.kind,
                      one.name.empty() ? "" : before + clean(elide_middle(one.name, 50))));
    }
    return "critical path: " + join(parts, ", ");
  }

  void intervention(const std::string& number, const Intervention& one) {
    out_ += "\n" + terminal_.paint(Style::kBold, number + one.title) + "\n";
    entry("saves",
          fmt::format("{}, {}{}; confidence {}, {}", percents(one.saved_share),
                      times(one.saved_ns, advice_.unit),
                      one.on_top_share
                          ? fmt::format("; {:.0f}% on top of the above", 100 * *one.on_top_share)
                          : "",
                      one.confidence, one.estimate == "replay" ? "by replay" : "by kernels"),
          Style::kGreen);
    if (!one.kernels.empty()) {
      std::vector<std::string> names;
      for (std::size_t k = 0; k < std::min(kKernelsShown, one.kernels.size()); ++k)
        names.push_back(clean(elide_middle(one.kernels[k], 60)));
      const double more =
          static_cast<double>(one.kernels.size() - names.size()) + one.kernels_left_out;
      std::string text = join(names, ", ");
      if (more > 0) text += fmt::format(" and {:.0f} more", more);
      entry("kernels", text);
    }
    evidence(one.evidence);
    steps("how", one.how);
    bool first = true;
    for (const std::string& assumption : one.assumptions) {
      entry(first ? "assumes" : "", assumption);
      first = false;
    }
    if (!one.guard.empty()) entry("check", one.guard);
    if (one.freed_bytes != 0)
      entry("memory", fmt::format("{} {}", one.freed_bytes > 0 ? "frees" : "takes",
                                  format_bytes(std::abs(one.freed_bytes))));
    entry("filed under",
          fmt::format("{}, {}; effort {}, risk {}, {}, by the {}", spaced_words(to_text(one.at)),
                      spaced_words(to_text(one.pillar)), one.effort, one.risk, one.portability,
                      one.expertise) +
              (one.route.empty() ? "" : ", in " + one.route));

    if (one.record) entry("record", record_in_words(*one.record));
    entry("more", one.doc);
  }

  // Like an intervention, but without a saving.
  void unknown_roof(const UnknownRoof& one) {
    out_ +=
        "\n" +
        terminal_.paint(Style::kBold, "not known: how far " + clean(elide_middle(one.kernel, 60)) +
                                          " is from its roof") +
        "\n";
    entry("takes",
          fmt::format("{:.0f}%, {}{}; no saving is estimated", 100 * one.share, short_ns(one.ns),
                      advice_.unit.kind == "step" ? " a step" : ""),
          Style::kYellow);
    std::vector<std::string> parts;
    for (const Evidence& item : one.launch) parts.push_back(item.what + ": " + item.value);
    entry("launch", join(parts, "; "));
    steps("collect", one.collect);
    steps("look at", one.look_at);
  }
  // Of evidence of one kind, such as each chain to fuse, the first few.
  void evidence(const std::vector<Evidence>& all) {
    std::map<std::string_view, std::size_t> shown;
    std::size_t left_out = 0;
    for (const Evidence& item : all) {
      if (shown[item.what]++ >= kAlikeShown) {
        ++left_out;
        continue;
      }
      entry(&item == all.data() ? "evidence" : "",
            fmt::format("{}: {} ({})", clean(item.what), clean(item.value), item.from));
    }
    if (left_out > 0)
      entry("", fmt::format("and {} more like these, which --json has",
                            counted(static_cast<double>(left_out), "line")));
  }
  void steps(std::string_view key, const std::vector<std::string>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) entry(i == 0 ? key : "", "- " + all[i]);
  }

  void stalls() {
    if (advice_.stalls.empty()) return;
    out_ += "\n" + terminal_.paint(Style::kBold, "why warps wait") + "\n";
    for (std::size_t i = 0; i < std::min(kShownStalls, advice_.stalls.size()); ++i) {
      const StallNote& one = advice_.stalls[i];
      std::string text = fmt::format(
          "- {}: {}, {:.0f}% of the stalls{}", clean(elide_middle(one.kernel, 60)),
          clean(one.reason), 100 * one.stalled, one.meaning.empty() ? "" : ": for " + one.meaning);
      if (!one.where.empty()) text += ", most at " + clean(elide_middle(one.where, 70));
      if (!one.occupancy.empty()) text += ". More occupancy does not help: " + one.occupancy;
      paragraph(Style::kPlain, text, "  ");
    }
  }

  void no_gain() {
    if (advice_.no_gain.empty()) return;
    out_ += "\n" + terminal_.paint(Style::kBold, "changes with little or no gain") + "\n";
    for (const NoGain& one : advice_.no_gain) {
      std::vector<std::string> names;
      for (const std::string& name : one.kernels) names.push_back(clean(elide_middle(name, 40)));
      std::string text = one.what;
      if (one.saved_ns)
        text += fmt::format(": predicted saving {}",
                            *one.saved_ns > 0 ? short_ns(*one.saved_ns) : std::string("0"));
      if (!names.empty()) text += " for " + join(names, ", ");
      paragraph(Style::kPlain, "- " + text + "; " + one.why, "  ");
    }
  }

  static bool is_hardware(const WhatIf& one) {
    return one.resource == "gpu" || one.resource == "gpus" || one.resource == "data";
  }
  // What no single change is, however much it would save.
  void bounds() {
    bool first = true;
    for (const WhatIf& one : advice_.what_if) {
      if (is_hardware(one)) continue;
      if (std::exchange(first, false))
        out_ += "\n" + terminal_.paint(Style::kBold, "at most") + "\n";
      paragraph(Style::kPlain, "- " + one.text, "  ");
    }
  }

  void hardware() {
    bool first = true;
    for (const WhatIf& one : advice_.what_if) {
      if (!is_hardware(one)) continue;
      const char* title = one.resource == "data" ? "less data, other hardware" : "other hardware";
      if (first) out_ += "\n" + terminal_.paint(Style::kBold, title) + "\n";
      first = false;
      paragraph(Style::kPlain, "- " + one.text, "  ");
    }
  }

  void list(const char* title, const std::vector<ListedKernel>& items, bool loses) {
    if (items.empty()) return;
    out_ += "\n" + terminal_.paint(Style::kBold, title) + "\n";
    Table table;
    table.column(loses ? "lost" : "to gain", Table::Align::kRight);
    table.column("kernel");
    table.column("why");
    for (const ListedKernel& item : items)
      table.row({short_ns(item.saved_ns), clean(elide_middle(item.label, 36)),
                 elide_middle(item.obsolete_after > 0 ? fmt::format("obsolete after step {}; {}",
                                                                    item.obsolete_after, item.why)
                                                      : item.why,
                              width() > 72 ? width() - 52 : 20)});
    out_ += table.render(terminal_, "  ");
  }

  void lists() {
    list("tune these", advice_.tune, false);
    list("got slower", advice_.slower, true);
    if (!advice_.against.empty() && advice_.slower.empty())
      paragraph(Style::kPlain, "No kernel got slower than in " + clean(advice_.against) + ".", "");
  }

  void alerts() {
    if (advice_.alerts.empty()) return;
    out_ += "\n" + terminal_.paint(Style::kBold, "alerts") + "\n";
    for (std::size_t i = 0; i < std::min(kShownAlerts, advice_.alerts.size()); ++i) {
      const Alert& alert = advice_.alerts[i];
      paragraph(alert.severity == "critical" ? Style::kRed : Style::kYellow,
                fmt::format("! {} {}: {}", alert.severity, alert.id, clean(alert.text)), "  ");
    }
  }

  // What is done takes one line: it asks for nothing.
  void checklist() {
    if (advice_.checklist.empty()) return;
    out_ += "\n" + terminal_.paint(Style::kBold, "checklist") + "\n";
    std::vector<std::string> done;
    for (const CheckItem& item : advice_.checklist)
      if (item.state == "done") done.push_back(spaced_words(item.id));
    if (!done.empty()) paragraph(Style::kPlain, "[x] " + join(done, ", "), "  ");
    for (const CheckItem& item : advice_.checklist) {
      if (item.state == "done") continue;
      const char* mark = item.state == "found" ? "[!]" : item.state == "open" ? "[ ]" : "[?]";
      paragraph(item.state == "found" ? Style::kYellow : Style::kPlain,
                fmt::format("{} {}: {}", mark, item.text, clean(item.why)), "  ");
    }
  }

  void notes() {
    if (advice_.notes.empty()) return;
    out_ += "\n";
    for (const std::string& note : advice_.notes) paragraph(Style::kDim, "- " + clean(note), "  ");
  }

  const Advice& advice_;
  const Terminal& terminal_;
  std::string out_;
};

}  // namespace

std::string render_advice(const Advice& advice, const Terminal& terminal, int top) {
  return AdviceRenderer(advice, terminal).full(top);
}

}  // namespace purlin::analyze
