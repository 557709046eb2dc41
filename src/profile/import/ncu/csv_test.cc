// SPDX-License-Identifier: Apache-2.0
#include "profile/import/csv.h"

#include "base/files.h"
#include "base/text.h"
#include "profile/import/import.h"
#include "profile/import/ncu/values.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::profile {
namespace {

constexpr const char* kRaw = PURLIN_SOURCE_DIR "/tests/data/imports/ncu_raw_h200.csv";

Result<Profile> import_ncu(std::string_view text) {
  const std::string folder = *make_temporary_directory("purlin-ncu");
  const std::string path = join_path(folder, "ncu.csv");
  EXPECT_TRUE(write_atomic(path, text).is_ok());
  Result<Profile> profile = import_ncu_csv(path, {});
  EXPECT_TRUE(remove_tree(folder).is_ok());
  return profile;
}

double ncu_counter(const KernelRow& row, std::string_view name) {
  for (const Counter& c : row.counters)
    if (c.name == name) return c.value;
  return -1;
}

bool has_note(const Profile& profile, std::string_view cause) {
  return std::any_of(profile.coverage.notes.begin(), profile.coverage.notes.end(),
                     [&](const CoverageNote& note) { return note.cause == cause; });
}

TEST(NcuValues, DecimalSeparator) {
  for (const char* text : {"4.30", "1,024.5", "1,048,576", "0.123", "1234.567", "12.3", "-1.5"})
    EXPECT_EQ(decimal_separator(text), '.') << text;
  for (const char* text : {"9,00", "1.024,5", "1.048.576", "0,123", "1234,567"})
    EXPECT_EQ(decimal_separator(text), ',') << text;
  for (const char* text : {"1,024", "1.024", "12", "", "n/a", "(256, 1, 1)", "9.x"})
    EXPECT_EQ(decimal_separator(text), 0) << text;
}

TEST(NcuValues, Numbers) {
  EXPECT_EQ(parse_ncu_number("1,048,576", '.'), 1048576);
  EXPECT_EQ(parse_ncu_number("3,436,545,678,000.82", '.'), 3436545678000.82);
  EXPECT_EQ(parse_ncu_number("-0.5", '.'), -0.5);
  EXPECT_EQ(parse_ncu_number("1.024,5", ','), 1024.5);
  EXPECT_EQ(parse_ncu_number("9,00", ','), 9);
  EXPECT_EQ(parse_ncu_number("1\xE2\x80\xAF"
                             "234,5",
                             ','),
            1234.5);
  EXPECT_EQ(parse_ncu_number("5,120 (1: 5,000; 2: 120)", '.'), 5120);
  EXPECT_EQ(parse_ncu_number("1.5e3", '.'), 1500);
  for (const char* text : {"", "nan", "inf", "n/a", "no data", "No-CC", "(!) n/a", "-", "1-2"})
    EXPECT_EQ(parse_ncu_number(text, '.'), std::nullopt) << text;
}

TEST(NcuValues, Units) {
  EXPECT_EQ(unit_factor("Kbyte"), 1e3);
  EXPECT_EQ(unit_factor("Mbyte"), 1e6);
  EXPECT_EQ(unit_factor("byte"), 1);
  EXPECT_EQ(unit_factor("Kbyte/block"), 1e3);
  EXPECT_EQ(unit_factor("Tbyte/second"), 1e12);
  EXPECT_EQ(unit_factor("Gbyte/s"), 1e9);
  EXPECT_EQ(unit_factor("usecond"), 1e3);
  EXPECT_EQ(unit_factor("\xC2\xB5s"), 1e3) << "the micro sign";
  EXPECT_EQ(unit_factor("\xCE\xBCs"), 1e3) << "the letter mu";
  EXPECT_EQ(unit_factor("GB/s"), 1e9);
  EXPECT_EQ(unit_factor("ms"), 1e6);
  EXPECT_EQ(unit_factor("nsecond"), 1);
  EXPECT_EQ(unit_factor("second"), 1e9);
  EXPECT_EQ(unit_factor("Ghz"), 1e9);
  EXPECT_EQ(unit_factor("cycle/nsecond"), 1e9);
  EXPECT_EQ(unit_factor("cycle/usecond"), 1e6);
  for (const char* unit : {"", "%", "inst/cycle", "register/thread", "SM", "M", "Mystery", "//"})
    EXPECT_EQ(unit_factor(unit), 1) << unit;
}

TEST(NcuCsv, RawPageOfAnH200) {
  const Result<Profile> profile = import_ncu_csv(kRaw, {});
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  EXPECT_EQ(profile->source, "ncu");
  EXPECT_EQ(profile->command, "aa");
  EXPECT_FALSE(profile->partial);
  EXPECT_TRUE(profile->timeline.empty());
  EXPECT_TRUE(has_note(*profile, "replayed"));
  EXPECT_TRUE(has_note(*profile, "recorder_message"));

  ASSERT_EQ(profile->environment.devices.size(), 1u);
  const DeviceInfo& device = profile->environment.devices[0];
  EXPECT_EQ(device.name, "NVIDIA H200");
  EXPECT_EQ(device.arch, "sm_90");
  EXPECT_EQ(device.compute_units, 132);
  EXPECT_EQ(device.clock_mhz, 1980);
  EXPECT_EQ(device.memory_bus_bits, 6016);
  EXPECT_EQ(device.memory_bytes, 150'109'880'320u);
  EXPECT_EQ(device.max_grid, (std::array<std::int64_t, 3>{2'147'483'647, 65'535, 65'535}));

  ASSERT_EQ(profile->kernels.size(), 2u);
  const KernelRow& large = profile->kernels[0];
  EXPECT_EQ(large.name, "saxpy(float *, const float *, float, unsigned long)");
  EXPECT_EQ(large.launch.grid, (Dim3{262'144, 1, 1}));
  EXPECT_EQ(large.launch.block, (Dim3{256, 1, 1}));
  EXPECT_EQ(large.registers, 16u);
  EXPECT_EQ(large.duration.count(), 3);
  EXPECT_NEAR(ncu_counter(large, "dram__bytes_read.sum"), 536.9e6, 0.1e6);
  EXPECT_EQ(ncu_counter(large, "gpu__time_duration.sum"), large.duration.mean_ns());
  EXPECT_EQ(ncu_counter(large, "derived_tempMetric4"), -1) << "nan is no value";
  for (const Counter& c : large.counters) {
    EXPECT_EQ(c.launches, 3) << c.name;
    EXPECT_FALSE(starts_with(c.name, "device__attribute_")) << c.name;
  }
  EXPECT_EQ(profile->kernels[1].launch.grid, (Dim3{4, 1, 1}));
  EXPECT_EQ(profile->coverage.launches_seen, 4);
}

constexpr std::string_view kDetails =
    "==PROF== Connected to process 1\n"
    R"csv("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"
"0","1","app","h","k(int *)","1","7","(256, 1, 1)","(8, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","usecond","2.50","","","","",""
"0","1","app","h","k(int *)","1","7","(256, 1, 1)","(8, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Memory Throughput","%","14.26","","","","",""
"0","1","app","h","k(int *)","1","7","(256, 1, 1)","(8, 2, 1)","0","8.0","GPU Speed Of Light Throughput","SM Frequency","cycle/nsecond","1.29","","","","",""
"0","1","app","h","k(int *)","1","7","(256, 1, 1)","(8, 2, 1)","0","8.0","SpeedOfLight","","","","SOLBottleneck","OPT","Memory is ""busier"" than compute,
look there","global","12"
"0","1","app","h","k(int *)","1","7","(256, 1, 1)","(8, 2, 1)","0","8.0","Memory Workload Analysis","Memory Throughput","Gbyte/second","12.50","","","","",""
"0","1","app","h","k(int *)","1","7","(256, 1, 1)","(8, 2, 1)","0","8.0","Launch Statistics","Registers Per Thread","register/thread","34","","","","",""
"0","1","app","h","k(int *)","1","7","(256, 1, 1)","(8, 2, 1)","0","8.0","Launch Statistics","Dynamic Shared Memory Per Block","Kbyte/block","16.38","","","","",""
"0","1","app","h","k(int *)","1","7","(256, 1, 1)","(8, 2, 1)","0","8.0","Launch Statistics","A New Metric","inst","1,234","","","","",""
"1","1","app","h","k(int *)","1","7","(256, 1, 1)","(8, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","msecond","1.00","","","","",""
)csv";

TEST(NcuCsv, DetailsPage) {
  const Result<Profile> profile = import_ncu(kDetails);
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  // The second launch shows no registers, so it is another row.
  ASSERT_EQ(profile->kernels.size(), 2u);
  const KernelRow& row = profile->kernels[0];
  EXPECT_EQ(row.launch.grid, (Dim3{8, 2, 1}));
  EXPECT_EQ(row.registers, 34u);
  EXPECT_EQ(row.launch.dynamic_shared_bytes, 16'380u);
  EXPECT_EQ(row.duration.total_ns(), 2500);
  EXPECT_EQ(ncu_counter(row, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            14.26);
  EXPECT_EQ(ncu_counter(row, "dram__bytes.sum.per_second"), 12.5e9);
  EXPECT_EQ(ncu_counter(row, "sm__cycles_elapsed.avg.per_second"), 1.29e9);
  EXPECT_EQ(ncu_counter(row, "A New Metric"), 1234);
  EXPECT_EQ(profile->kernels[1].duration.total_ns(), 1e6);
  EXPECT_EQ(profile->environment.devices.at(0).arch, "sm_80");
}

// ncu of 2019 and 2020: no sizes, metrics by name, a decimal comma as the system's locale wants.
// As ncu 2025.3 writes it: metrics without the columns of rules, rules without those of metrics.
TEST(NcuCsv, DetailsPageWithRulesHasShortRows) {
  const std::string launch = R"x("0","1009","t","127.0.0.1","axpy(float *)","1","7",)x"
                             R"x("(256, 1, 1)","(65536, 1, 1)","0","9.0",)x";
  const std::string header =
      R"("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",)"
      R"("Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit",)"
      R"("Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup Type",)"
      "\"Estimated Speedup\"\n";
  const std::string sol = launch + R"("GPU Speed Of Light Throughput",)";
  const auto profile =
      import_ncu(header + sol + R"("Duration","ns","58,624",)" + "\n" + sol +
                 R"("DRAM Throughput","%","64.90",)" + "\n" + launch +
                 R"("SpeedOfLight","","","","SOLBottleneck","OPT","Memory","","")" + "\n");
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  ASSERT_EQ(profile->kernels.size(), 1u);
  EXPECT_EQ(profile->kernels[0].duration.total_ns(), 58'624);
  EXPECT_EQ(profile->kernels[0].counters.size(), 2u);
  EXPECT_FALSE(has_note(*profile, "rows_damaged"));
  const auto cut = import_ncu(header + sol + R"("Duration","ns","58,624",)" + "\n" + sol +
                              R"("DRAM Throughput","%","64)");
  ASSERT_TRUE(cut.is_ok());
  EXPECT_TRUE(cut->partial);
}

TEST(NcuCsv, MetricsByNameInACommaLocale) {
  const Result<Profile> profile = import_ncu(
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
      "\"0\",\"k\",\"launch__block_size\",\"\",\"1.024\"\n"
      "\"0\",\"k\",\"gpu__time_duration.sum\",\"usecond\",\"1.024,50\"\n"
      "\"0\",\"k\",\"sm__warps_active.avg.pct_of_peak_sustained_active\",\"%\",\"15,72\"\n"
      "\"1\",\"k\",\"launch__block_size\",\"\",\"1.024\"\n"
      "\"1\",\"k\",\"gpu__time_duration.sum\",\"usecond\",\"975,50\"\n"
      "\"1\",\"k\",\"sm__warps_active.avg.pct_of_peak_sustained_active\",\"%\",\"14,28\"\n");
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  ASSERT_EQ(profile->kernels.size(), 1u);
  const KernelRow& row = profile->kernels[0];
  EXPECT_EQ(row.launch.block, (Dim3{1024, 1, 1}));
  EXPECT_EQ(row.duration.count(), 2);
  EXPECT_EQ(row.duration.total_ns(), 2e6);
  EXPECT_NEAR(ncu_counter(row, "sm__warps_active.avg.pct_of_peak_sustained_active"), 15, 1e-9);
}

// Times in ns are whole, so "117.344" there has a separator of thousands. The compute capability is
// printed with a point in every locale.
TEST(NcuCsv, WholeNumbersTellTheLocaleWhereNothingElseDoes) {
  const auto total = [](std::string_view unit, std::string_view value) {
    const Result<Profile> profile = import_ncu(fmt::format(
        "\"ID\",\"Kernel Name\",\"CC\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
        "\"0\",\"k\",\"8.9\",\"gpu__time_duration.sum\",\"{}\",\"{}\"\n",
        unit, value));
    EXPECT_TRUE(profile.is_ok());
    return fmt::format("{}{}", profile->kernels.at(0).duration.total_ns(),
                       has_note(*profile, "decimal_comma") ? " comma" : "");
  };
  EXPECT_EQ(total("ns", "117.344"), "117344 comma");
  EXPECT_EQ(total("nsecond", "1.117.344"), "1117344 comma");
  EXPECT_EQ(total("ns", "117,344"), "117344");
  EXPECT_EQ(total("ns", "117 344"), "117344");
  EXPECT_EQ(total("us", "117.34"), "117340");
  EXPECT_EQ(total("us", "117,34"), "117340 comma");
  EXPECT_EQ(total("\xC2\xB5s", "117.34"), "117340");
  // The raw page has the units in a row.
  const Result<Profile> raw = import_ncu(
      "\"ID\",\"Kernel Name\",\"CC\",\"gpu__time_duration.sum\"\n\"\",\"\",\"\",\"ns\"\n"
      "\"0\",\"k\",\"8.9\",\"14.912\"\n");
  ASSERT_TRUE(raw.is_ok());
  EXPECT_EQ(raw->kernels.at(0).duration.total_ns(), 14'912);
}

TEST(NcuCsv, SummariesCountTheirInvocations) {
  const Result<Profile> profile = import_ncu(
      "\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Block Size\",\"Grid Size\","
      "\"Device\",\"CC\",\"Invocations\",\"Section Name\",\"Metric Name\",\"Metric "
      "Unit\",\"Minimum\","
      "\"Maximum\",\"Average\"\n"
      "\"1\",\"a\",\"h\",\"k\",\"(32, 1, 1)\",\"(1, 1, 1)\",\"0\",\"9.0\",\"10\",\"Command line "
      "profiler metrics\",\"gpu__time_duration.sum\",\"nsecond\",\"90\",\"110\",\"100\"\n");
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  EXPECT_EQ(profile->kernels.at(0).duration.count(), 10);
  EXPECT_EQ(profile->kernels.at(0).duration.total_ns(), 1000);
}

// As a spreadsheet saves it where commas are decimal: fields in quotes only where they need them.
TEST(NcuCsv, SavedWithOtherSeparators) {
  const Result<Profile> original = import_ncu(*read_file(kRaw));
  ASSERT_TRUE(original.is_ok());
  for (const char separator : {';', '\t'}) {
    std::string saved;
    CsvReader reader(Input::from_bytes(*read_file(kRaw)));
    while (*reader.next_line()) {
      for (std::size_t i = 0; i < reader.fields().size(); ++i)
        saved += (i > 0 ? std::string(1, separator) : "") + std::string(reader.field(i));
      saved += "\r\n";
    }
    const Result<Profile> profile = import_ncu(saved);
    ASSERT_TRUE(profile.is_ok()) << profile.status().message();
    ASSERT_EQ(profile->kernels.size(), original->kernels.size());
    for (std::size_t i = 0; i < profile->kernels.size(); ++i) {
      EXPECT_EQ(profile->kernels[i].name, original->kernels[i].name);
      EXPECT_EQ(profile->kernels[i].duration.total_ns(), original->kernels[i].duration.total_ns());
    }
  }
}

// A spreadsheet takes ';' where its decimal separator is the comma. Points still count.
TEST(NcuCsv, SemicolonsTellTheLocaleWhereNothingElseDoes) {
  const auto total = [](std::string_view value) {
    const Result<Profile> profile =
        import_ncu(fmt::format("ID;Kernel Name;CC;Metric Name;Metric Unit;Metric Value\n"
                               "0;k;8,9;gpu__time_duration.sum;us;{}\n",
                               value));
    EXPECT_TRUE(profile.is_ok());
    return profile->kernels.at(0).duration.total_ns();
  };
  EXPECT_EQ(total("117,344"), 117'344);
  EXPECT_EQ(total("117.34"), 117'340);
}

TEST(NcuCsv, WhatIsMissingIsSaid) {
  const Result<Profile> profile = import_ncu(
      "\"ID\",\"Kernel Name\",\"dram__bytes.sum\"\n\"\",\"\",\"Mbyte\"\n\"0\",\"k\",\"2.00\"\n");
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  EXPECT_TRUE(has_note(*profile, "durations_unknown"));
  EXPECT_TRUE(profile->kernels.at(0).duration.empty());
  EXPECT_EQ(ncu_counter(profile->kernels.at(0), "dram__bytes.sum"), 2e6);
}

TEST(NcuCsv, CutShortIsPartial) {
  const std::string whole = *read_file(kRaw);
  const Result<Profile> inside = import_ncu(whole.substr(0, whole.size() - 700));
  ASSERT_TRUE(inside.is_ok()) << inside.status().message();
  EXPECT_TRUE(inside->partial);
  EXPECT_EQ(inside->coverage.launches_seen, 3);
  EXPECT_TRUE(has_note(*inside, "damaged"));
}

TEST(NcuCsv, RowsThatDoNotFitAreCounted) {
  const Result<Profile> profile = import_ncu(
      "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"ns\"\n\"0\",\"k\",\"1\"\n"
      "\"1\",\"k\"\n==PROF== Disconnected\n\"2\",\"k\",\"3\"\n");
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  EXPECT_EQ(profile->coverage.launches_seen, 2);
  EXPECT_FALSE(profile->partial);
  for (const CoverageNote& note : profile->coverage.notes)
    EXPECT_EQ(note.cause == "rows_damaged", note.text.find("line 4") != std::string::npos);
  EXPECT_TRUE(has_note(*profile, "rows_damaged"));
}

TEST(NcuCsv, NoKernelsSaysWhatNcuSaid) {
  const Status status =
      import_ncu("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n").status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("ERR_NVGPUCTRPERM"), std::string::npos) << status.message();
  EXPECT_EQ(import_ncu("").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin::profile
