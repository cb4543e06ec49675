#include "src/cli/reports/info_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pando::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

InfoReport InventedReport() {
  InfoReport report;
  report.version = "1.2.3";
  report.machine = {.cpu_model = "Aspen 9000",
                    .num_packages = 1,
                    .num_cores = 2,
                    .num_hardware_threads = 4,
                    .numa_nodes = {{.index = 0, .memory_bytes = size_t{8} << 30, .num_hardware_threads = 4}},
                    .caches = {{.level = 1, .bytes = 32768, .line_bytes = 64, .shared_by = 2, .count = 2}}};
  report.available_memory_bytes = size_t{6} << 30;
  report.simd_targets = {"AVX2", "SCALAR"};
  report.simd_target_in_use = "AVX2";
  report.limits = {{.num_threads = 1, .read_gb_per_s = 20.04, .fma_gflops = 90.0}};
  return report;
}

TEST(InfoReportTest, ThreadCountsDoubleAndEndWithAll) {
  EXPECT_THAT(ThreadCountsToMeasure(1), ElementsAre(1));
  EXPECT_THAT(ThreadCountsToMeasure(2), ElementsAre(1, 2));
  EXPECT_THAT(ThreadCountsToMeasure(6), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(ThreadCountsToMeasure(8), ElementsAre(1, 2, 4, 8));
}

TEST(InfoReportTest, TextSaysWhatTheMachineIs) {
  EXPECT_EQ(RenderInfoText(InventedReport()),
            "pando           1.2.3, version 2 of the order of sums\n"
            "CPU             Aspen 9000\n"
            "usable here     4 threads, 2 cores, 1 package\n"
            "SIMD targets    AVX2, SCALAR (in use: AVX2)\n"
            "L1 cache        2 x 32.0 KiB, 64-byte lines, 2 threads each\n"
            "memory          8.0 GiB, 6.0 GiB available\n"
            "NUMA node 0     8.0 GiB, 4 threads\n"
            "1 thread        reads 20.0 GB/s, multiplies and adds 90 GFLOP/s (f32)\n");
}

TEST(InfoReportTest, UnknownCpuIsSaidSo) {
  EXPECT_THAT(RenderInfoText(InfoReport()), HasSubstr("CPU             unknown\n"));
}

TEST(InfoReportTest, JsonHasTheSameFacts) {
  const auto json = nlohmann::json::parse(RenderInfoJson(InventedReport()));
  EXPECT_EQ(json["version"], "1.2.3");
  EXPECT_EQ(json["contract_version"], 2);
  EXPECT_EQ(json["cpu_model"], "Aspen 9000");
  EXPECT_EQ(json["threads"], 4);
  EXPECT_EQ(json["simd_targets"], nlohmann::json({"AVX2", "SCALAR"}));
  EXPECT_EQ(json["caches"][0]["shared_by_threads"], 2);
  EXPECT_EQ(json["memory_bytes"], size_t{8} << 30);
  EXPECT_EQ(json["numa_nodes"][0]["threads"], 4);
  EXPECT_EQ(json["limits"][0]["read_gb_per_s"], 20.0);
}

}  // namespace
}  // namespace pando::cli
