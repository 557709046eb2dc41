// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/reader.h"

#include "base/files.h"
#include "base/hash.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace purlin::store {
namespace {

constexpr std::size_t kMaxOpenFiles = 40;
constexpr std::size_t kMaxCachedBytesOfAll = std::size_t{48} << 20;

// The file's state stays the same until the end of the scope.
struct Snapshot {
  explicit Snapshot(PeriodReader& of) : reader(of) {}
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() { reader.end(); }
  PeriodReader& reader;
};

using EntryIds = PeriodReader::SeriesRow;

struct EntryIdsHash {
  std::size_t operator()(const EntryIds& ids) const { return hash64(ids.data(), sizeof ids); }
};

// The group of each series in one slot's step. It is found by the ids of its entries: by their
// texts only once per combination of a file.
class SeriesGroups {
 public:
  SeriesGroups(const PeriodReader& reader, Grouping& grouping)
      : reader_(reader), grouping_(grouping) {}

  void begin_step(std::int64_t begin_ns) {
    if (begin_ns == begin_ns_) return;
    begin_ns_ = begin_ns;
    of_series_.assign(reader_.series().size(), kUnknown);
    of_entry_.assign(reader_.entries().size(), kUnknown);
    by_ids_.clear();
  }
  std::size_t of(std::uint32_t series) {
    std::int64_t& known = of_series_[series];
    if (known == kUnknown) known = static_cast<std::int64_t>(of(reader_.series()[series]));
    return static_cast<std::size_t>(known);
  }
  std::size_t of(const EntryIds& row) {
    const std::vector<Kind>& kinds = grouping_.kinds();
    if (kinds.size() != 1) return find(row);
    const std::uint32_t entry = row[static_cast<std::size_t>(kinds[0])];
    if (of_entry_[entry] == kUnknown) of_entry_[entry] = static_cast<std::int64_t>(find(row));
    return static_cast<std::size_t>(of_entry_[entry]);
  }

 private:
  static constexpr std::int64_t kUnknown = -1;
  std::size_t find(const EntryIds& row) {
    EntryIds ids = {};
    for (const Kind kind : grouping_.kinds())
      ids[static_cast<std::size_t>(kind)] = row[static_cast<std::size_t>(kind)];
    if (const auto known = by_ids_.find(ids); known != by_ids_.end()) return known->second;
    const std::size_t number =
        grouping_.number(begin_ns_, grouping_.values([&](Kind kind) -> const Fields& {
          return reader_.entries()[row[static_cast<std::size_t>(kind)]].fields;
        }));
    by_ids_.emplace(ids, number);
    return number;
  }

  const PeriodReader& reader_;
  Grouping& grouping_;
  std::int64_t begin_ns_ = -1;
  std::vector<std::int64_t> of_series_, of_entry_;  // entries of the one kind that groups differ by
  std::unordered_map<EntryIds, std::size_t, EntryIdsHash> by_ids_;
};

// Calls use(row) for the rows of an hour in memory whose entries match.
template <class Use>
Status scan_live(const LiveSlots::Table& table, const PeriodReader::MatchingEntries& matching,
                 Use use) {
  std::vector<std::size_t> asked;
  for (std::size_t kind = 0; kind < matching.size(); ++kind)
    if (!matching[kind].empty()) asked.push_back(kind);
  for (const LiveSlots::Row& row : table.rows()) {
    const bool matches = std::all_of(asked.begin(), asked.end(), [&](std::size_t kind) {
      return matching[kind][row.ids[kind]] != 0;
    });
    if (matches) PURLIN_TRY(use(row));
  }
  return Status::ok();
}

template <class Row>
Status add_row(const Row& row, bool totals, bool sketches, Group& group, const PeriodReader& reader,
               int slot) {
  if (totals) {
    group.launches += row.launches;
    group.recorded += row.recorded;
    group.sum_ns += row.sum_ns;
  }
  if (sketches && !group.sketch.add(std::string_view(row.sketch)))
    return error(Code::kCorrupt, "{}: a sketch in slot {} is damaged; run `purlin store check`",
                 reader.path(), slot);
  return Status::ok();
}

}  // namespace

Result<PeriodReader*> SqliteReader::period(Level level, std::int64_t ns) {
  const std::string path = folder_.path(level, ns);
  for (auto at = open_.begin(); at != open_.end(); ++at) {
    if ((*at)->path() != path) continue;
    open_.splice(open_.begin(), open_, at);
    return open_.front().get();
  }
  if (!file_exists(path)) return nullptr;
  const std::int64_t begin = *period_begin(level, period_name(level, ns));
  Result<PeriodReader> reader = PeriodReader::open(path, level, begin);
  if (!reader.is_ok() && reader.status().code() == Code::kNotFound) return nullptr;
  if (!reader.is_ok()) return reader.status();
  open_.push_front(std::make_unique<PeriodReader>(std::move(reader).value()));
  if (open_.size() > kMaxOpenFiles) open_.pop_back();
  return open_.front().get();
}

void SqliteReader::close(Level level, std::int64_t period_ns) {
  const std::string path = folder_.path(level, period_ns);
  open_.remove_if([&](const auto& reader) { return reader->path() == path; });
}

Result<std::optional<std::int64_t>> SqliteReader::folded(Level level, std::int64_t slot_ns) {
  PURLIN_ASSIGN(PeriodReader* const reader, period(level, slot_ns));
  if (reader == nullptr) return std::optional<std::int64_t>();
  PURLIN_ASSIGN(const auto slots, reader->folded());
  for (const auto& [slot, revision] : slots)
    if (slot == slot_of(level, slot_ns)) return std::optional(revision);
  return std::optional<std::int64_t>();
}

Result<std::int64_t> SqliteReader::revision(Level level, std::int64_t period_ns) {
  PURLIN_ASSIGN(PeriodReader* const reader, period(level, period_ns));
  if (reader == nullptr) return std::int64_t{0};
  return reader->revision();
}

Result<std::vector<Part>> SqliteReader::plan_of(const Filter& filter, Step step, bool per_gpu) {
  FoldState state;
  PURLIN_ASSIGN(const std::vector<std::int64_t> days, folder_.periods(Level::kHours));
  PURLIN_ASSIGN(const std::vector<std::int64_t> months, folder_.periods(Level::kDays));
  state.days.insert(days.begin(), days.end());
  state.months.insert(months.begin(), months.end());
  state.revision = [this](Level level, std::int64_t ns) { return revision(level, ns); };
  state.folded = [this](Level level, std::int64_t ns) { return folded(level, ns); };
  return plan(state, filter, step, per_gpu || filter.per_gpu());
}

Status SqliteReader::walk(const std::vector<Part>& parts, const Filter& filter, Grouping& grouping,
                          const Wanted& wanted) {
  for (const Part& part : parts) {
    PURLIN_ASSIGN(PeriodReader* const reader, period(part.level, part.period_ns));
    if (reader == nullptr) continue;  // removed since the plan was made
    const Snapshot snapshot(*reader);
    PURLIN_TRY(reader->begin());
    PURLIN_TRY(walk_part(*reader, part, filter, grouping, wanted));
    limit_memory(*reader);
  }
  return Status::ok();
}

// The file that was read last keeps its slots.
void SqliteReader::limit_memory(const PeriodReader& last) {
  std::size_t bytes = 0;
  for (const auto& reader : open_) bytes += reader->cached_bytes();
  if (bytes <= kMaxCachedBytesOfAll) return;
  for (const auto& reader : open_)
    if (reader.get() != &last) reader->forget();
}

Result<bool> SqliteReader::use_live(PeriodReader& reader, const Part& part, int slot,
                                    const std::function<Status(const LiveSlots::Table&)>& use) {
  const auto load = [&]() -> Result<LiveSlots::Table> {
    PURLIN_TRY(reader.renew());
    PURLIN_ASSIGN(const std::int64_t revision, reader.slot_revision(slot));
    LiveSlots::Table table(revision);
    PURLIN_TRY(
        reader.scan_file(slot, reader.matching({}), [&](const PeriodReader::Row& row) -> Status {
          EntryIds ids = reader.series()[row.series];
          ids[static_cast<std::size_t>(Kind::kUnit)] = 0;
          if (table.add(ids, row.launches, row.recorded, row.sketch)) return Status::ok();
          return error(
              Code::kCorrupt,
              "{}: the sketch of series {} in slot {} is damaged; run `purlin store check`",
              reader.path(), row.series, slot);
        }));
    return table;
  };
  return live_->use(folder_.path(part.level, part.period_ns), slot, load,
                    [&](const LiveSlots::Table& table) -> Status {
                      if (table.last_entry() >= reader.entries().size())
                        PURLIN_TRY(reader.renew());  // the file has what the rows name
                      if (table.last_entry() >= reader.entries().size())
                        return error(Code::kCorrupt, "{}: rows name entry {}, which is not there",
                                     reader.path(), table.last_entry());
                      return use(table);
                    });
}

Status SqliteReader::walk_part(PeriodReader& reader, const Part& part, const Filter& filter,
                               Grouping& grouping, const Wanted& wanted) {
  if (!may_be_live(part, filter, grouping.needs_unit()))
    return walk_file(reader, part, filter, grouping, wanted);
  for (int slot = part.first_slot; slot <= part.last_slot; ++slot) {
    const auto use = [&](const LiveSlots::Table& table) -> Status {
      SeriesGroups groups(reader, grouping);
      groups.begin_step(point_of(grouping.step(), slot_begin(part.level, part.period_ns, slot)));
      return scan_live(table, reader.matching_entries(filter), [&](const LiveSlots::Row& row) {
        const std::size_t number = groups.of(row.ids);
        if (wanted.groups != nullptr &&
            (number >= wanted.groups->size() || (*wanted.groups)[number] == 0))
          return Status::ok();
        return add_row(row, wanted.totals, wanted.sketches, grouping.groups()[number], reader,
                       slot);
      });
    };
    PURLIN_ASSIGN(const bool done, use_live(reader, part, slot, use));
    if (!done)
      PURLIN_TRY(
          walk_file(reader, {part.level, part.period_ns, slot, slot}, filter, grouping, wanted));
  }
  return Status::ok();
}

Status SqliteReader::walk_file(PeriodReader& reader, const Part& part, const Filter& filter,
                               Grouping& grouping, const Wanted& wanted) {
  SeriesGroups groups(reader, grouping);
  std::vector<char> matching = reader.matching(filter);
  if (wanted.groups != nullptr) {
    groups.begin_step(0);
    for (std::uint32_t id = 1; id < matching.size(); ++id) {
      if (matching[id] == 0) continue;
      const std::size_t number = groups.of(id);
      matching[id] = number < wanted.groups->size() && (*wanted.groups)[number] != 0;
    }
  }
  return reader.scan(
      part.first_slot, part.last_slot, matching, [&](const PeriodReader::Row& row) -> Status {
        groups.begin_step(
            point_of(grouping.step(), slot_begin(part.level, part.period_ns, row.slot)));
        return add_row(row, wanted.totals, wanted.sketches,
                       grouping.groups()[groups.of(row.series)], reader, row.slot);
      });
}

Result<std::vector<Cell>> SqliteReader::cells(const Filter& filter,
                                              const std::vector<Dimension>& by, Step step) {
  Grouping grouping(by, step);
  PURLIN_ASSIGN(const std::vector<Part> parts, plan_of(filter, step, grouping.needs_unit()));
  PURLIN_TRY(walk(parts, filter, grouping, {true, true, nullptr}));
  return grouping.cells();
}

// Sums first, and then the sketches of the kernels that are asked for: most rows are of others.
Result<TopKernels> SqliteReader::top(const Filter& filter, std::size_t limit) {
  Grouping grouping(top_dimensions(), Step::kAll);
  PURLIN_ASSIGN(const std::vector<Part> parts, plan_of(filter, Step::kAll, false));
  PURLIN_TRY(walk(parts, filter, grouping, {true, false, nullptr}));
  const std::vector<std::size_t> chosen = heaviest(grouping.groups(), limit);
  std::vector<char> of_these(grouping.groups().size(), 0);
  for (const std::size_t number : chosen) of_these[number] = 1;
  PURLIN_TRY(walk(parts, filter, grouping, {false, true, &of_these}));
  return top_kernels(grouping.groups(), chosen);
}

Result<std::vector<CoverageCell>> SqliteReader::coverage(const Filter& filter, Step step) {
  CoverageTable table(step);
  PURLIN_ASSIGN(const std::vector<Part> parts, plan_of(filter, step, false));
  const KindFilter platforms(filter, Kind::kPlatform), units(filter, Kind::kUnit);
  for (const Part& part : parts) {
    PURLIN_ASSIGN(PeriodReader* const reader, period(part.level, part.period_ns));
    if (reader == nullptr) continue;
    const Snapshot snapshot(*reader);
    PURLIN_TRY(reader->begin());
    const auto fields = [&](std::uint32_t id) -> const Fields& {
      return reader->entries()[id].fields;
    };
    PURLIN_TRY(reader->scan_coverage(part.first_slot, part.last_slot, [&](const CoverageRow& row) {
      if (platforms.matches(fields(row.platform)) && units.matches(fields(row.unit)))
        table.add(slot_begin(part.level, part.period_ns, row.slot), fields(row.platform),
                  fields(row.unit), fields(row.why), row.amounts);
      return Status::ok();
    }));
  }
  return std::move(table).cells();
}

Result<std::vector<NodeState>> SqliteReader::nodes() {
  PURLIN_ASSIGN(const std::vector<std::int64_t> days, folder_.periods(Level::kHours));
  NodeTable table;
  for (const std::int64_t day : days) {
    PURLIN_ASSIGN(PeriodReader* const reader, period(Level::kHours, day));
    if (reader == nullptr) continue;
    PURLIN_ASSIGN(const std::vector<NodeState> states, reader->sources());
    for (const NodeState& state : states) table.add(state);
  }
  std::vector<NodeState> nodes = table.nodes();
  PURLIN_ASSIGN(Catalog* const catalog, this->catalog());
  PURLIN_TRY(catalog->add_to(nodes));
  return nodes;
}

Result<std::vector<std::string>> SqliteReader::values(Dimension dimension, const Filter& filter) {
  const Place place = place_of(dimension);
  PURLIN_ASSIGN(const std::vector<Part> parts,
                plan_of(filter, Step::kAll, place.kind == Kind::kUnit));
  std::set<std::string> found;
  for (const Part& part : parts) {
    PURLIN_ASSIGN(PeriodReader* const reader, period(part.level, part.period_ns));
    if (reader == nullptr) continue;
    const Snapshot snapshot(*reader);
    PURLIN_TRY(reader->begin());
    std::vector<char> named;
    const auto name = [&](const EntryIds& ids) {
      named.resize(reader->entries().size(), 0);
      named[ids[static_cast<std::size_t>(place.kind)]] = 1;
      return Status::ok();
    };
    for (int slot = part.first_slot; slot <= part.last_slot; ++slot) {
      bool done = false;
      if (may_be_live(part, filter, place.kind == Kind::kUnit)) {
        PURLIN_ASSIGN(done, use_live(*reader, part, slot, [&](const LiveSlots::Table& table) {
                        return scan_live(table, reader->matching_entries(filter),
                                         [&](const LiveSlots::Row& row) { return name(row.ids); });
                      }));
      }
      if (!done)
        PURLIN_TRY(reader->scan(
            slot, slot, reader->matching(filter),
            [&](const PeriodReader::Row& row) { return name(reader->series()[row.series]); }));
    }
    limit_memory(*reader);
    for (std::size_t id = 1; id < named.size(); ++id) {
      const Fields& fields = reader->entries()[id].fields;
      if (named[id] != 0 && place.field < fields.size()) found.insert(fields[place.field]);
    }
  }
  found.erase("");
  return std::vector<std::string>(found.begin(), found.end());
}

Result<Catalog*> SqliteReader::catalog() {
  if (!catalog_) {
    PURLIN_ASSIGN(Catalog catalog, Catalog::open(folder_.catalog(), Database::Mode::kRead));
    catalog_.emplace(std::move(catalog));
  }
  return &*catalog_;
}

Result<std::vector<RawInfo>> SqliteReader::raws(const Filter& filter) {
  PURLIN_ASSIGN(Catalog* const catalog, this->catalog());
  return catalog->raws(filter);
}

Result<std::vector<GuardResult>> SqliteReader::guard_history(const std::string& kernel,
                                                             std::size_t limit) {
  PURLIN_ASSIGN(Catalog* const catalog, this->catalog());
  return catalog->guard_history(kernel, limit);
}

// Each file by itself: one that is damaged hides no other.
Status SqliteReader::check(StoreCheck& result) {
  for (const Level level : {Level::kHours, Level::kDays, Level::kMonths}) {
    PURLIN_ASSIGN(const std::vector<std::int64_t> begins, folder_.periods(level));
    for (const std::int64_t begin : begins) {
      const std::string path = folder_.path(level, begin);
      for (const char* ending : {"", "-wal"})
        if (file_exists(path + ending)) result.bytes += file_size(path + ending).value_or(0);
      Result<PeriodReader*> reader = period(level, begin);
      if (reader.is_ok() && *reader == nullptr) {
        result.findings.push_back(
            {path, "it is empty: a writer was killed before its first commit, or the file was cut",
             false});
        continue;
      }
      const Status status = reader.is_ok() ? (*reader)->check(result) : reader.status();
      if (!status.is_ok()) result.findings.push_back({path, status.message(), true});
      close(level, begin);
    }
  }
  result.bytes += file_size(folder_.catalog()).value_or(0);
  Result<Catalog*> catalog = this->catalog();
  const Status status = catalog.is_ok() ? (*catalog)->check(result) : catalog.status();
  if (!status.is_ok()) result.findings.push_back({folder_.catalog(), status.message(), true});
  return Status::ok();
}

}  // namespace purlin::store
