// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/reader.h"

#include "store/node_table.h"
#include "store/shed_text.h"

#include <algorithm>
#include <limits>
#include <set>

namespace purlin::store {
namespace {

using profile::wire::Decoder;

constexpr const char* kTableOf[] = {"hours", "days", "months"};
const std::vector<Kind>& series_kinds() {
  static const std::vector<Kind> kinds = {Kind::kKernel, Kind::kProblem, Kind::kPlatform,
                                          Kind::kBuild,  Kind::kJob,     Kind::kUnit};
  return kinds;
}

std::int64_t hour_number(std::int64_t ns) { return ns / kHourNs; }

Status damaged_answer(const Client& client) {
  return error(Code::kIo, "ClickHouse at {}: its answer is cut short", client.target().url);
}

// The table keeps buckets only: minimum and maximum are the bounds of the outer ones.
bool add_buckets(BucketSum& sum, Level level, const std::vector<std::int32_t>& buckets,
                 const std::vector<double>& weights, double total) {
  if (buckets.empty()) return true;
  if (buckets.size() != weights.size() || buckets.front() < 0 ||
      buckets.back() >= Sketch::kMaxBuckets)
    return false;
  std::vector<double> dense(static_cast<std::size_t>(buckets.back() - buckets.front()) + 1, 0);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto at = static_cast<std::size_t>(buckets[i] - buckets.front());
    if (at >= dense.size()) return false;
    dense[at] += weights[i];
  }
  const int scale = scale_of(level);
  Sketch sketch;
  if (!sketch.restore(buckets.front(), std::move(dense), total,
                      Sketch::lower_bound(buckets.front(), scale),
                      Sketch::upper_bound(buckets.back(), scale), scale))
    return false;
  sum.add(sketch);
  return true;
}

// Where no day or month can answer, what was folded need not be known.
bool hours_alone(const Filter& filter, Step step, std::int64_t horizon_ns) {
  const bool is_short = filter.end_ns > 0 && filter.end_ns - filter.begin_ns <= kDaysFromNs;
  return (step == Step::kAll || step == Step::kHour) && is_short && filter.begin_ns >= horizon_ns;
}

}  // namespace

Result<std::int64_t> ClickhouseReader::horizon_ns() {
  return client_.integer("SELECT toInt64(max(value)) FROM {db}.meta WHERE key = 'horizon_ns'");
}

Result<std::map<std::int64_t, std::uint64_t>> ClickhouseReader::days() {
  PURLIN_ASSIGN(const std::int64_t horizon, horizon_ns());
  PURLIN_ASSIGN(const std::string rows,
                client_.select(fmt::format("SELECT toInt64(intDiv(hour, 24)) AS day, "
                                           "toUInt64(sum(launches)) FROM {{db}}.hours WHERE kernel "
                                           "= {} AND hour >= {} GROUP BY day",
                                           kBatchKernel, hour_number(horizon))));
  std::map<std::int64_t, std::uint64_t> days;
  Decoder in(rows);
  while (!in.at_end()) {
    const auto day = static_cast<std::int64_t>(in.fixed64()) * kDayNs;
    days[day] = in.fixed64();
  }
  if (in.failed()) return damaged_answer(client_);
  return days;
}

Result<ClickhouseReader::Folds> ClickhouseReader::folds() {
  PURLIN_ASSIGN(
      const std::string rows,
      client_.select("SELECT level, toInt64(hour), max(generation) AS last, "
                     "argMax(revision, generation) FROM {db}.folds GROUP BY level, hour"));
  Folds folds;
  Decoder in(rows);
  while (!in.at_end()) {
    const auto level = static_cast<Level>(in.u8());
    const auto hour = static_cast<std::int64_t>(in.fixed64());
    Fold& fold = folds[{level, hour * kHourNs}];
    fold.generation = in.fixed64();
    fold.revision = in.fixed64();
  }
  if (in.failed()) return damaged_answer(client_);
  return folds;
}

// One question for each table: hours of ranges, and the generations of days and months.
Result<std::vector<ClickhouseReader::Source>> ClickhouseReader::sources(const Filter& filter,
                                                                        Step step, bool per_gpu) {
  PURLIN_ASSIGN(const std::int64_t horizon, horizon_ns());
  if (hours_alone(filter, step, horizon))
    return std::vector<Source>{
        {Level::kHours, fmt::format(" WHERE hour >= {} AND hour < {}", hour_number(filter.begin_ns),
                                    (filter.end_ns + kHourNs - 1) / kHourNs)}};
  PURLIN_ASSIGN(const auto days, this->days());
  PURLIN_ASSIGN(const Folds folds, this->folds());
  FoldState state;
  std::map<std::int64_t, std::int64_t> month_revisions;
  for (const auto& [day, batches] : days) state.days.insert(day);
  for (const auto& [key, fold] : folds) {
    if (key.first != Level::kDays) continue;
    state.months.insert(month_begin(key.second));
    month_revisions[month_begin(key.second)] += static_cast<std::int64_t>(fold.revision);
  }
  state.revision = [&](Level level, std::int64_t ns) -> Result<std::int64_t> {
    if (level == Level::kDays) return month_revisions[ns];
    return static_cast<std::int64_t>(days.at(ns));
  };
  state.folded = [&](Level level, std::int64_t ns) -> Result<std::optional<std::int64_t>> {
    const auto at = folds.find({level, ns});
    if (at == folds.end()) return std::optional<std::int64_t>();
    return std::optional(static_cast<std::int64_t>(at->second.revision));
  };
  PURLIN_ASSIGN(const std::vector<Part> parts,
                plan(state, filter, step, per_gpu || filter.per_gpu()));
  std::map<Level, std::string> conditions;
  for (const Part& part : parts) {
    std::string& condition = conditions[part.level];
    const std::int64_t begin = slot_begin(part.level, part.period_ns, part.first_slot);
    if (!condition.empty()) condition += " OR ";
    condition +=
        part.level == Level::kHours
            ? fmt::format("hour BETWEEN {} AND {}", hour_number(begin),
                          hour_number(slot_begin(part.level, part.period_ns, part.last_slot)))
            : fmt::format("(hour = {} AND generation = {})", hour_number(begin),
                          folds.at({part.level, begin}).generation);
  }
  std::vector<Source> sources;
  for (const auto& [level, condition] : conditions)
    sources.push_back({level, fmt::format(" WHERE ({})", condition)});
  return sources;
}

Status ClickhouseReader::add_rows(const Source& source, const Filter& filter, Grouping& grouping,
                                  bool sketches, const std::string& more) {
  std::string columns;
  for (const Kind kind : grouping.kinds()) columns += fmt::format("{}, ", column_of(kind));
  const Step step = grouping.step();
  const char* const point = step == Step::kAll    ? "toUInt32(0)"
                            : step == Step::kHour ? "hour"
                                                  : "toUInt32(intDiv(hour, 24) * 24)";
  // `point` is no column of the table, so that it can be a constant.
  const std::string sql = fmt::format(
      "SELECT {0}{1} AS point, sum(launches), sum(recorded), sum(sum_ns){2} FROM {{db}}.{3}{4} AND "
      "kernel > {5}{6}{7} GROUP BY {0}point",
      columns, point,
      sketches ? ", (sumMap(bucketsMap.bucket, bucketsMap.weight) AS m).1, m.2" : "",
      kTableOf[static_cast<std::size_t>(source.level)], source.where, kCoverageKernel,
      filter_sql(client_, filter, series_kinds()), more);
  PURLIN_ASSIGN(const std::string rows, client_.select(sql));
  return group_rows(rows, source, grouping, sketches);
}

Status ClickhouseReader::group_rows(const std::string& rows, const Source& source,
                                    Grouping& grouping, bool sketches) {
  const std::vector<Kind>& kinds = grouping.kinds();
  struct Read {
    std::vector<std::uint64_t> ids;
    std::int64_t hour = 0;
    double launches = 0, recorded = 0, sum_ns = 0;
    std::vector<std::int32_t> buckets;
    std::vector<double> weights;
  };
  std::vector<Read> all;
  std::vector<std::vector<std::uint64_t>> ids(kinds.size());
  Decoder in(rows);
  while (!in.at_end()) {
    Read& row = all.emplace_back();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      row.ids.push_back(in.fixed64());
      ids[i].push_back(row.ids.back());
    }
    row.hour = in.fixed32();
    row.launches = in.real(), row.recorded = in.real(), row.sum_ns = in.real();
    if (!sketches) continue;
    row.buckets = read_int32s(in);
    row.weights = read_reals(in);
  }
  if (in.failed()) return damaged_answer(client_);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    PURLIN_TRY(dictionary_.read(client_, kinds[i], ids[i]));
  for (const Read& row : all) {
    const Fields values = grouping.values([&](Kind kind) -> const Fields& {
      const auto at = std::find(kinds.begin(), kinds.end(), kind);
      return dictionary_.fields(row.ids[static_cast<std::size_t>(at - kinds.begin())]);
    });
    Group& group =
        grouping.groups()[grouping.number(point_of(grouping.step(), row.hour * kHourNs), values)];
    group.launches += row.launches;
    group.recorded += row.recorded;
    group.sum_ns += row.sum_ns;
    if (sketches && !add_buckets(group.sketch, source.level, row.buckets, row.weights, row.sum_ns))
      return error(Code::kCorrupt, "{}: a sketch in table {} is damaged", client_.target().url,
                   kTableOf[static_cast<std::size_t>(source.level)]);
  }
  return Status::ok();
}

Result<std::vector<Cell>> ClickhouseReader::cells(const Filter& filter,
                                                  const std::vector<Dimension>& by, Step step) {
  Grouping grouping(by, step);
  PURLIN_ASSIGN(const std::vector<Source> sources,
                this->sources(filter, step, grouping.needs_unit()));
  for (const Source& source : sources) PURLIN_TRY(add_rows(source, filter, grouping, true, ""));
  return grouping.cells();
}

// Sums first, and then the sketches of the kernels that are asked for.
Result<TopKernels> ClickhouseReader::top(const Filter& filter, std::size_t limit) {
  Grouping totals(top_dimensions(), Step::kAll), sketches(top_dimensions(), Step::kAll);
  PURLIN_ASSIGN(const std::vector<Source> sources, this->sources(filter, Step::kAll, false));
  for (const Source& source : sources) PURLIN_TRY(add_rows(source, filter, totals, false, ""));
  const std::vector<std::size_t> chosen = heaviest(totals.groups(), limit);
  if (chosen.empty()) return top_kernels(totals.groups(), chosen);
  std::string ids;
  for (const std::size_t number : chosen)
    ids += (ids.empty() ? "" : ",") +
           std::to_string(entry_id(Kind::kKernel, join_fields(totals.groups()[number].values)));
  for (const Source& source : sources)
    PURLIN_TRY(add_rows(source, filter, sketches, true, fmt::format(" AND kernel IN ({})", ids)));
  for (const std::size_t number : chosen) {
    Group& group = totals.groups()[number];
    group.sketch = sketches.groups()[sketches.number(0, group.values)].sketch;
  }
  return top_kernels(totals.groups(), chosen);
}

Result<std::vector<CoverageCell>> ClickhouseReader::coverage(const Filter& filter, Step step) {
  CoverageTable table(step);
  PURLIN_ASSIGN(const std::vector<Source> sources, this->sources(filter, step, false));
  for (const Source& source : sources) {
    PURLIN_ASSIGN(
        const std::string rows,
        client_.select(fmt::format(
            "SELECT hour, problem, platform, unit, (sumMap(bucketsMap.bucket, bucketsMap.weight) "
            "AS "
            "m).1, m.2 FROM {{db}}.{}{} AND kernel = {}{} GROUP BY hour, problem, platform, unit",
            kTableOf[static_cast<std::size_t>(source.level)], source.where, kCoverageKernel,
            filter_sql(client_, filter, {Kind::kPlatform, Kind::kUnit}))));
    Decoder in(rows);
    while (!in.at_end()) {
      const std::int64_t hour = in.fixed32();
      const std::uint64_t why = in.fixed64(), platform = in.fixed64(), unit = in.fixed64();
      const std::vector<std::int32_t> numbers = read_int32s(in);
      const std::vector<double> values = read_reals(in);
      if (in.failed() || numbers.size() != values.size()) return damaged_answer(client_);
      PURLIN_TRY(dictionary_.read(client_, Kind::kWhy, {why}));
      PURLIN_TRY(dictionary_.read(client_, Kind::kPlatform, {platform}));
      PURLIN_TRY(dictionary_.read(client_, Kind::kUnit, {unit}));
      std::array<double, 7> amounts = {};
      for (std::size_t i = 0; i < numbers.size(); ++i)
        if (numbers[i] >= 1 && numbers[i] <= 7)
          amounts[static_cast<std::size_t>(numbers[i] - 1)] = values[i];
      table.add(hour * kHourNs, dictionary_.fields(platform), dictionary_.fields(unit),
                dictionary_.fields(why), amounts);
    }
  }
  return std::move(table).cells();
}

// Sequences from the rows that name batches, the rest from what each node said last in a day.
Result<std::vector<NodeState>> ClickhouseReader::nodes() {
  PURLIN_ASSIGN(const std::int64_t horizon, horizon_ns());
  PURLIN_ASSIGN(const std::string rows,
                client_.select(fmt::format(
                    "SELECT build, toUInt64(sum(launches)), min(job), max(job), sum(sum_ns) FROM "
                    "{{db}}.hours WHERE kernel = {} AND unit = 1 AND hour >= {} GROUP BY build",
                    kBatchKernel, hour_number(horizon))));
  std::map<std::uint64_t, NodeState> by_id;
  Decoder in(rows);
  while (!in.at_end()) {
    NodeState& state = by_id[in.fixed64()];
    state.batches = in.fixed64();
    state.first_sequence = in.fixed64(), state.last_sequence = in.fixed64();
    state.collector_cpu_ns = in.real();
  }
  PURLIN_ASSIGN(const std::string last,
                client_.select("SELECT id, any(node), any(boot), argMax(tool_version, sequence), "
                               "min(begin_ns), max(end_ns), argMax(received_ns, sequence), "
                               "argMax(skew_ns, sequence), argMax(rss_bytes, sequence), "
                               "argMax(shed, sequence) FROM {db}.source GROUP BY id"));
  Decoder lines(last);
  NodeTable table;
  while (!lines.at_end() && !lines.failed()) {
    const auto found = by_id.find(lines.fixed64());
    NodeState state = found == by_id.end() ? NodeState() : found->second;
    state.node = lines.text(), state.boot = lines.text(), state.tool_version = lines.text();
    state.first_begin_ns = static_cast<std::int64_t>(lines.fixed64());
    state.last_end_ns = static_cast<std::int64_t>(lines.fixed64());
    state.last_received_ns = static_cast<std::int64_t>(lines.fixed64());
    state.skew_ns = static_cast<std::int64_t>(lines.fixed64());
    state.collector_rss_bytes = lines.fixed64();
    ShedAndSpool known = parse_shed(lines.text());
    state.shed = std::move(known.shed), state.spool = known.spool;
    if (found != by_id.end()) table.add(state);
  }
  if (in.failed() || lines.failed()) return damaged_answer(client_);
  std::vector<NodeState> nodes = table.nodes();
  const auto count = [&](const char* sql, std::uint64_t NodeState::*into) -> Status {
    PURLIN_ASSIGN(const std::string counts, client_.select(sql));
    Decoder lines_of(counts);
    while (!lines_of.at_end() && !lines_of.failed()) {
      const std::string node(lines_of.text()), boot(lines_of.text());
      const std::uint64_t number = lines_of.fixed64();
      auto at = std::find_if(nodes.begin(), nodes.end(), [&](const NodeState& state) {
        return state.node == node && state.boot == boot;
      });
      if (at == nodes.end()) {
        at = nodes.emplace(nodes.end());
        at->node = node, at->boot = boot;
      }
      (*at).*into = number;
    }
    return lines_of.failed() ? damaged_answer(client_) : Status::ok();
  };
  PURLIN_TRY(
      count("SELECT node, boot, toUInt64(uniqExact(hash)) FROM {db}.too_old GROUP BY node, "
            "boot",
            &NodeState::too_old));
  PURLIN_TRY(
      count("SELECT node, boot, toUInt64(count()) FROM (SELECT node, boot, hash, "
            "argMax(gone, version) AS is_gone FROM {db}.quarantine GROUP BY node, boot, "
            "hash) WHERE is_gone = 0 GROUP BY node, boot",
            &NodeState::quarantined));
  return nodes;
}

Result<std::vector<std::string>> ClickhouseReader::values(Dimension dimension,
                                                          const Filter& filter) {
  const Kind kind = place_of(dimension).kind;
  PURLIN_ASSIGN(const std::vector<Source> sources,
                this->sources(filter, Step::kAll, kind == Kind::kUnit));
  std::vector<std::uint64_t> ids;
  for (const Source& source : sources) {
    PURLIN_ASSIGN(const std::string rows,
                  client_.select(fmt::format(
                      "SELECT DISTINCT {} FROM {{db}}.{}{} AND kernel > {}{}", column_of(kind),
                      kTableOf[static_cast<std::size_t>(source.level)], source.where,
                      kCoverageKernel, filter_sql(client_, filter, series_kinds()))));
    Decoder in(rows);
    while (!in.at_end()) ids.push_back(in.fixed64());
  }
  PURLIN_TRY(dictionary_.read(client_, kind, ids));
  std::set<std::string> found;
  for (const std::uint64_t id : ids)
    found.insert(dictionary_.fields(id)[place_of(dimension).field]);
  found.erase("");
  return std::vector<std::string>(found.begin(), found.end());
}

RawInfo read_raw(Decoder& in) {
  RawInfo info;
  info.pointer.sha256 = in.text();
  info.pointer.bytes = in.fixed64();
  info.pointer.begin_ns = static_cast<std::int64_t>(in.fixed64());
  info.pointer.end_ns = static_cast<std::int64_t>(in.fixed64());
  info.pointer.kind = in.text(), info.pointer.kernel = in.text();
  info.node = in.text(), info.build = in.text(), info.job = in.text();
  info.keep_until_ns = static_cast<std::int64_t>(in.fixed64());
  info.kept_for = in.text();
  return info;
}

Result<std::vector<RawInfo>> ClickhouseReader::raws(const Filter& filter) {
  std::string where;
  for (const auto& [dimension, column] :
       {std::pair(Dimension::kNode, "node"), std::pair(Dimension::kBuild, "build"),
        std::pair(Dimension::kJob, "job"), std::pair(Dimension::kKernel, "kernel")})
    if (filter[dimension])
      where += fmt::format(" AND {} = {}", column, sql_text(*filter[dimension]));
  const std::int64_t end =
      filter.end_ns > 0 ? filter.end_ns : std::numeric_limits<std::int64_t>::max();
  PURLIN_ASSIGN(const std::string rows,
                client_.select(fmt::format(
                    "SELECT sha256, bytes, begin_ns, end_ns, kind, kernel, node, build, job, "
                    "keep_until_ns, kept_for FROM {{db}}.raw FINAL WHERE gone = 0 AND begin_ns >= "
                    "{} AND begin_ns < {}{} ORDER BY begin_ns DESC, sha256",
                    filter.begin_ns, end, where)));
  std::vector<RawInfo> raws;
  Decoder in(rows);
  while (!in.at_end() && !in.failed()) raws.push_back(read_raw(in));
  if (in.failed()) return damaged_answer(client_);
  return raws;
}

Result<std::vector<GuardResult>> ClickhouseReader::guard_history(const std::string& kernel,
                                                                 std::size_t limit) {
  const std::string where =
      kernel.empty() ? "" : fmt::format(" WHERE has(kernels, {})", sql_text(kernel));
  PURLIN_ASSIGN(const std::string rows,
                client_.select(fmt::format("SELECT id, time_ns, suite, verdict, build, model, "
                                           "kernels, document FROM {{db}}.guard FINAL{} ORDER BY "
                                           "time_ns DESC, id LIMIT {}",
                                           where, std::min<std::size_t>(limit, 1'000'000))));
  std::vector<GuardResult> results;
  Decoder in(rows);
  while (!in.at_end() && !in.failed()) {
    GuardResult& result = results.emplace_back();
    result.id = in.text();
    result.time_ns = static_cast<std::int64_t>(in.fixed64());
    result.suite = in.text(), result.verdict = in.text();
    result.build = in.text(), result.model = in.text();
    for (std::size_t left = in.count(); left > 0 && !in.failed(); --left)
      result.kernels.emplace_back(in.text());
    result.document = in.text();
  }
  if (in.failed()) return damaged_answer(client_);
  return results;
}

}  // namespace purlin::store
