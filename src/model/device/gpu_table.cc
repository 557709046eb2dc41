// SPDX-License-Identifier: Apache-2.0
// Figures: NVIDIA's data sheets and architecture white papers, AMD's CDNA sheets; dense, of one
// device as software sees it (a GCD of an MI250X). FP16 and BF16 tensor rates accumulate in FP32,
// which halves GeForce, A10G and L40.
#include "model/device/gpu_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

namespace purlin {
namespace {

constexpr bool kTensor = true, kAtTensorClock = true;

constexpr GpuRate kP100Sxm[] = {
    {"f64", false, 64, 5.3}, {"f32", false, 128, 10.6}, {"f16", false, 256, 21.2}};
constexpr GpuRate kP100Pcie[] = {
    {"f64", false, 64, 4.7}, {"f32", false, 128, 9.3}, {"f16", false, 256, 18.7}};
constexpr GpuRate kV100Sxm[] = {{"f64", false, 64, 7.8},
                                {"f32", false, 128, 15.7},
                                {"f16", false, 256, 31.4},
                                {"f16", kTensor, 1024, 125}};
constexpr GpuRate kV100Pcie[] = {{"f64", false, 64, 7},
                                 {"f32", false, 128, 14},
                                 {"f16", false, 256, 28},
                                 {"f16", kTensor, 1024, 112}};
constexpr GpuRate kV100s[] = {{"f64", false, 64, 8.2},
                              {"f32", false, 128, 16.4},
                              {"f16", false, 256, 32.7},
                              {"f16", kTensor, 1024, 130}};
constexpr GpuRate kT4[] = {{"f64", false, 4, 0.254},
                           {"f32", false, 128, 8.1},
                           {"f16", false, 256, 16.3},
                           {"f16", kTensor, 1024, 65},
                           {"i8", kTensor, 2048, 130}};
constexpr GpuRate kTitanRtx[] = {{"f64", false, 4, 0.51},
                                 {"f32", false, 128, 16.3},
                                 {"f16", false, 256, 32.6},
                                 {"f16", kTensor, 1024, 130.5},
                                 {"i8", kTensor, 2048, 261}};
constexpr GpuRate kRtx2080Ti[] = {{"f64", false, 4, 0.42},
                                  {"f32", false, 128, 13.4},
                                  {"f16", false, 256, 26.9},
                                  {"f16", kTensor, 512, 53.8},
                                  {"i8", kTensor, 2048, 215.2}};
constexpr GpuRate kA100[] = {
    {"f64", false, 64, 9.7},     {"f64", kTensor, 128, 19.5},  {"f32", false, 128, 19.5},
    {"f16", false, 512, 78},     {"bf16", false, 256, 39},     {"tf32", kTensor, 1024, 156},
    {"f16", kTensor, 2048, 312}, {"bf16", kTensor, 2048, 312}, {"i8", kTensor, 4096, 624}};
constexpr GpuRate kA30[] = {
    {"f64", false, 64, 5.2},     {"f64", kTensor, 128, 10.3},  {"f32", false, 128, 10.3},
    {"f16", false, 512, 41},     {"bf16", false, 256, 20.6},   {"tf32", kTensor, 1024, 82},
    {"f16", kTensor, 2048, 165}, {"bf16", kTensor, 2048, 165}, {"i8", kTensor, 4096, 330}};
constexpr GpuRate kA10[] = {{"f64", false, 4, 0.488},     {"f32", false, 256, 31.2},
                            {"f16", false, 256, 31.2},    {"bf16", false, 256, 31.2},
                            {"tf32", kTensor, 512, 62.5}, {"f16", kTensor, 1024, 125},
                            {"bf16", kTensor, 1024, 125}, {"i8", kTensor, 2048, 250}};
constexpr GpuRate kA10g[] = {{"f64", false, 4, 0.547},   {"f32", false, 256, 35},
                             {"f16", false, 256, 35},    {"bf16", false, 256, 35},
                             {"tf32", kTensor, 256, 35}, {"f16", kTensor, 512, 70},
                             {"bf16", kTensor, 512, 70}, {"i8", kTensor, 1024, 140}};
constexpr GpuRate kA40[] = {{"f64", false, 4, 0.585},       {"f32", false, 256, 37.4},
                            {"f16", false, 256, 37.4},      {"bf16", false, 256, 37.4},
                            {"tf32", kTensor, 512, 74.8},   {"f16", kTensor, 1024, 149.7},
                            {"bf16", kTensor, 1024, 149.7}, {"i8", kTensor, 2048, 299.3}};
constexpr GpuRate kA6000[] = {{"f64", false, 4, 0.605},       {"f32", false, 256, 38.7},
                              {"f16", false, 256, 38.7},      {"bf16", false, 256, 38.7},
                              {"tf32", kTensor, 512, 77.4},   {"f16", kTensor, 1024, 154.8},
                              {"bf16", kTensor, 1024, 154.8}, {"i8", kTensor, 2048, 309.7}};
constexpr GpuRate kA4000[] = {{"f64", false, 4, 0.3},        {"f32", false, 256, 19.2},
                              {"f16", false, 256, 19.2},     {"bf16", false, 256, 19.2},
                              {"tf32", kTensor, 512, 38.3},  {"f16", kTensor, 1024, 76.7},
                              {"bf16", kTensor, 1024, 76.7}, {"i8", kTensor, 2048, 153.4}};
constexpr GpuRate kRtx3090[] = {{"f64", false, 4, 0.556},     {"f32", false, 256, 35.6},
                                {"f16", false, 256, 35.6},    {"bf16", false, 256, 35.6},
                                {"tf32", kTensor, 256, 35.6}, {"f16", kTensor, 512, 71},
                                {"bf16", kTensor, 512, 71},   {"i8", kTensor, 2048, 284}};
constexpr GpuRate kOrin64[] = {{"f64", false, 4, 0},       {"f32", false, 256, 5.3},
                               {"f16", false, 512, 10.6},  {"bf16", false, 512, 0},
                               {"tf32", kTensor, 1024, 0}, {"f16", kTensor, 2048, 42.5},
                               {"bf16", kTensor, 2048, 0}, {"i8", kTensor, 4096, 85}};
// The same SM at other clocks.
constexpr GpuRate kArch87[] = {{"f64", false, 4, 0},       {"f32", false, 256, 0},
                               {"f16", false, 512, 0},     {"bf16", false, 512, 0},
                               {"tf32", kTensor, 1024, 0}, {"f16", kTensor, 2048, 0},
                               {"bf16", kTensor, 2048, 0}, {"i8", kTensor, 4096, 0}};
// What all models of sm_86 and sm_89 have; their tensor rates differ by model.
constexpr GpuRate kArch86[] = {
    {"f64", false, 4, 0}, {"f32", false, 256, 0}, {"f16", false, 256, 0}, {"bf16", false, 256, 0}};
constexpr GpuRate kL4[] = {
    {"f64", false, 4, 0.473},     {"f32", false, 256, 30.3},  {"f16", false, 256, 30.3},
    {"bf16", false, 256, 30.3},   {"tf32", kTensor, 512, 60}, {"f16", kTensor, 1024, 121},
    {"bf16", kTensor, 1024, 121}, {"f8", kTensor, 2048, 242}, {"i8", kTensor, 2048, 242}};
constexpr GpuRate kL40[] = {
    {"f64", false, 4, 1.414},    {"f32", false, 256, 90.5},    {"f16", false, 256, 90.5},
    {"bf16", false, 256, 90.5},  {"tf32", kTensor, 256, 90.5}, {"f16", kTensor, 512, 181},
    {"bf16", kTensor, 512, 181}, {"f8", kTensor, 1024, 362},   {"i8", kTensor, 1024, 362}};
constexpr GpuRate kL40s[] = {
    {"f64", false, 4, 1.43},      {"f32", false, 256, 91.6},   {"f16", false, 256, 91.6},
    {"bf16", false, 256, 91.6},   {"tf32", kTensor, 512, 183}, {"f16", kTensor, 1024, 362},
    {"bf16", kTensor, 1024, 362}, {"f8", kTensor, 2048, 733},  {"i8", kTensor, 2048, 733}};
constexpr GpuRate kRtx6000Ada[] = {
    {"f64", false, 4, 1.42},        {"f32", false, 256, 91.1},     {"f16", false, 256, 91.1},
    {"bf16", false, 256, 91.1},     {"tf32", kTensor, 512, 182.1}, {"f16", kTensor, 1024, 364.2},
    {"bf16", kTensor, 1024, 364.2}, {"f8", kTensor, 2048, 728.5},  {"i8", kTensor, 2048, 728.5}};
constexpr GpuRate kRtx4090[] = {
    {"f64", false, 4, 1.29},       {"f32", false, 256, 82.6},    {"f16", false, 256, 82.6},
    {"bf16", false, 256, 82.6},    {"tf32", kTensor, 256, 82.6}, {"f16", kTensor, 512, 165.2},
    {"bf16", kTensor, 512, 165.2}, {"f8", kTensor, 1024, 330.3}, {"i8", kTensor, 2048, 660.6}};
constexpr GpuRate kRtx5090[] = {
    {"f64", false, 4, 1.64},       {"f32", false, 256, 104.8},    {"f16", false, 256, 104.8},
    {"bf16", false, 256, 104.8},   {"tf32", kTensor, 256, 104.8}, {"f16", kTensor, 512, 209.5},
    {"bf16", kTensor, 512, 209.5}, {"f8", kTensor, 1024, 419},    {"i8", kTensor, 2048, 838},
    {"f6", kTensor, 1024, 419},    {"f4", kTensor, 4096, 1676}};
constexpr GpuRate kRtx5080[] = {
    {"f64", false, 4, 0.88},       {"f32", false, 256, 56.3},    {"f16", false, 256, 56.3},
    {"bf16", false, 256, 56.3},    {"tf32", kTensor, 256, 56.3}, {"f16", kTensor, 512, 112.6},
    {"bf16", kTensor, 512, 112.6}, {"f8", kTensor, 1024, 225.1}, {"i8", kTensor, 2048, 450.2},
    {"f6", kTensor, 1024, 225.1},  {"f4", kTensor, 4096, 900.4}};
constexpr GpuRate kRtxPro6000[] = {
    {"f64", false, 4, 1.97},        {"f32", false, 256, 125},      {"f16", false, 256, 125},
    {"bf16", false, 256, 125},      {"tf32", kTensor, 512, 251.9}, {"f16", kTensor, 1024, 503.8},
    {"bf16", kTensor, 1024, 503.8}, {"f8", kTensor, 2048, 1007.6}, {"i8", kTensor, 2048, 1007.6},
    {"f6", kTensor, 2048, 1007.6},  {"f4", kTensor, 4096, 2015.2}};
// NVIDIA prints one figure, 1 PFLOP/s of FP4 with sparsity. The others follow from the rates of its
// instructions.
constexpr GpuRate kGb10[] = {
    {"f64", false, 4, 0},       {"f32", false, 256, 31},   {"f16", false, 256, 0},
    {"bf16", false, 256, 0},    {"tf32", kTensor, 512, 0}, {"f16", kTensor, 1024, 0},
    {"bf16", kTensor, 1024, 0}, {"f8", kTensor, 2048, 0},  {"i8", kTensor, 2048, 0},
    {"f6", kTensor, 2048, 0},   {"f4", kTensor, 4096, 500}};
// FP64 tensor figures are at the boost clock, the others at the tensor clock.
constexpr GpuRate kH100Sxm[] = {{"f64", false, 128, 33.5},
                                {"f64", kTensor, 256, 66.9},
                                {"f32", false, 256, 66.9},
                                {"f16", false, 512, 133.8},
                                {"bf16", false, 512, 133.8},
                                {"tf32", kTensor, 2048, 494.7, kAtTensorClock},
                                {"f16", kTensor, 4096, 989.4, kAtTensorClock},
                                {"bf16", kTensor, 4096, 989.4, kAtTensorClock},
                                {"f8", kTensor, 8192, 1978.9, kAtTensorClock},
                                {"i8", kTensor, 8192, 1978.9, kAtTensorClock}};
constexpr GpuRate kH100Pcie[] = {{"f64", false, 128, 25.6},
                                 {"f64", kTensor, 256, 51.2},
                                 {"f32", false, 256, 51.2},
                                 {"f16", false, 512, 102.4},
                                 {"bf16", false, 512, 102.4},
                                 {"tf32", kTensor, 2048, 378, kAtTensorClock},
                                 {"f16", kTensor, 4096, 756, kAtTensorClock},
                                 {"bf16", kTensor, 4096, 756, kAtTensorClock},
                                 {"f8", kTensor, 8192, 1513, kAtTensorClock},
                                 {"i8", kTensor, 8192, 1513, kAtTensorClock}};
// The sheet's 1,671 TFLOP/s bf16 is with sparsity and implies 1,545 MHz under tensor load.
constexpr GpuRate kHopperNvl[] = {{"f64", false, 128, 30},
                                  {"f64", kTensor, 256, 60},
                                  {"f32", false, 256, 60},
                                  {"f16", false, 512, 120.6},
                                  {"bf16", false, 512, 120.6},
                                  {"tf32", kTensor, 2048, 417.5, kAtTensorClock},
                                  {"f16", kTensor, 4096, 835.5, kAtTensorClock},
                                  {"bf16", kTensor, 4096, 835.5, kAtTensorClock},
                                  {"f8", kTensor, 8192, 1670.5, kAtTensorClock},
                                  {"i8", kTensor, 8192, 1670.5, kAtTensorClock}};
constexpr GpuRate kB200[] = {{"f64", false, 128, 37},
                             {"f64", kTensor, 128, 37},
                             {"f32", false, 256, 75},
                             {"f16", false, 512, 0},
                             {"bf16", false, 512, 0},
                             {"tf32", kTensor, 4096, 1125, kAtTensorClock},
                             {"f16", kTensor, 8192, 2250, kAtTensorClock},
                             {"bf16", kTensor, 8192, 2250, kAtTensorClock},
                             {"f8", kTensor, 16384, 4500, kAtTensorClock},
                             {"i8", kTensor, 16384, 4500, kAtTensorClock},
                             {"f6", kTensor, 16384, 4500, kAtTensorClock},
                             {"f4", kTensor, 32768, 9000, kAtTensorClock}};
constexpr GpuRate kGb200[] = {{"f64", false, 128, 0},       {"f64", kTensor, 128, 0},
                              {"f32", false, 256, 0},       {"tf32", kTensor, 4096, 1250},
                              {"f16", kTensor, 8192, 2500}, {"bf16", kTensor, 8192, 2500},
                              {"f8", kTensor, 16384, 5000}, {"i8", kTensor, 16384, 5000},
                              {"f6", kTensor, 16384, 5000}, {"f4", kTensor, 32768, 10000}};
// Blackwell Ultra: FP4 has three times the rate of FP8, FP64 and INT8 a small part of B200's.
constexpr GpuRate kB300[] = {{"f64", false, 4, 0},
                             {"f32", false, 256, 75},
                             {"tf32", kTensor, 4096, 1125, kAtTensorClock},
                             {"f16", kTensor, 8192, 2250, kAtTensorClock},
                             {"bf16", kTensor, 8192, 2250, kAtTensorClock},
                             {"f8", kTensor, 16384, 4500, kAtTensorClock},
                             {"f6", kTensor, 16384, 4500, kAtTensorClock},
                             {"f4", kTensor, 49152, 13500, kAtTensorClock}};
constexpr GpuRate kGb300[] = {{"f64", false, 4, 0},          {"f32", false, 256, 0},
                              {"tf32", kTensor, 4096, 1250}, {"f16", kTensor, 8192, 2500},
                              {"bf16", kTensor, 8192, 2500}, {"f8", kTensor, 16384, 5000},
                              {"f6", kTensor, 16384, 5000},  {"f4", kTensor, 49152, 15000}};
constexpr GpuRate kMi210[] = {{"f64", false, 128, 22.6},   {"f64", kTensor, 256, 45.3},
                              {"f32", false, 128, 22.6},   {"f32", kTensor, 256, 45.3},
                              {"f16", kTensor, 1024, 181}, {"bf16", kTensor, 1024, 181},
                              {"i8", kTensor, 1024, 181}};
// Half of the board's figures: software sees one of its two dies.
constexpr GpuRate kMi250x[] = {{"f64", false, 128, 23.95},    {"f64", kTensor, 256, 47.85},
                               {"f32", false, 128, 23.95},    {"f32", kTensor, 256, 47.85},
                               {"f16", kTensor, 1024, 191.5}, {"bf16", kTensor, 1024, 191.5},
                               {"i8", kTensor, 1024, 191.5}};
constexpr GpuRate kMi300x[] = {
    {"f64", false, 128, 81.7},       {"f64", kTensor, 256, 163.4},   {"f32", false, 256, 163.4},
    {"f32", kTensor, 256, 163.4},    {"tf32", kTensor, 1024, 653.7}, {"f16", kTensor, 2048, 1307.4},
    {"bf16", kTensor, 2048, 1307.4}, {"f8", kTensor, 4096, 2614.9},  {"i8", kTensor, 4096, 2614.9}};

constexpr GpuRate kMi300a[] = {
    {"f64", false, 128, 61.3},      {"f64", kTensor, 256, 122.6},   {"f32", false, 256, 122.6},
    {"f32", kTensor, 256, 122.6},   {"tf32", kTensor, 1024, 490.3}, {"f16", kTensor, 2048, 980.6},
    {"bf16", kTensor, 2048, 980.6}, {"f8", kTensor, 4096, 1961.2},  {"i8", kTensor, 4096, 1961.2}};
constexpr GpuRate kMi350x[] = {{"f64", false, 128, 72.1},      {"f64", kTensor, 128, 72.1},
                               {"f32", false, 256, 144.2},     {"f32", kTensor, 256, 144.2},
                               {"f16", kTensor, 4096, 2306.9}, {"bf16", kTensor, 4096, 2306.9},
                               {"f8", kTensor, 8192, 4613.7},  {"i8", kTensor, 8192, 4613.7},
                               {"f6", kTensor, 16384, 9227.5}, {"f4", kTensor, 16384, 9227.5}};
constexpr GpuRate kMi355x[] = {{"f64", false, 128, 78.6},       {"f64", kTensor, 128, 78.6},
                               {"f32", false, 256, 157.3},      {"f32", kTensor, 256, 157.3},
                               {"f16", kTensor, 4096, 2516.6},  {"bf16", kTensor, 4096, 2516.6},
                               {"f8", kTensor, 8192, 5033.2},   {"i8", kTensor, 8192, 5033.2},
                               {"f6", kTensor, 16384, 10066.3}, {"f4", kTensor, 16384, 10066.3}};
constexpr GpuRate kR9700[] = {{"f64", false, 8, 0},        {"f32", false, 256, 47.8},
                              {"f16", false, 512, 95.7},   {"bf16", false, 256, 0},
                              {"f16", kTensor, 1024, 191}, {"bf16", kTensor, 1024, 191},
                              {"f8", kTensor, 2048, 383},  {"i8", kTensor, 2048, 383}};
constexpr GpuRate kRx9070Xt[] = {{"f64", false, 8, 0},        {"f32", false, 256, 48.7},
                                 {"f16", false, 512, 97.3},   {"bf16", false, 256, 0},
                                 {"f16", kTensor, 1024, 195}, {"bf16", kTensor, 1024, 195},
                                 {"f8", kTensor, 2048, 389},  {"i8", kTensor, 2048, 389}};
// Intel's units are Xe cores. Arc A has no FP64 units.
constexpr GpuRate kArcA770[] = {{"f32", false, 256, 17.2},
                                {"f16", false, 512, 34.4},
                                {"f16", kTensor, 2048, 137.6},
                                {"bf16", kTensor, 2048, 137.6},
                                {"i8", kTensor, 4096, 275}};
constexpr GpuRate kArcB580[] = {{"f64", false, 16, 0},     {"f32", false, 256, 13.7},
                                {"f16", false, 512, 0},    {"tf32", kTensor, 1024, 0},
                                {"f16", kTensor, 2048, 0}, {"bf16", kTensor, 2048, 0},
                                {"i8", kTensor, 4096, 0}};
// Half of the board's figures: software sees one of its two stacks.
constexpr GpuRate kMax1550[] = {{"f64", false, 256, 26.2},     {"f32", false, 256, 26.2},
                                {"f16", false, 512, 52.4},     {"tf32", kTensor, 2048, 209.5},
                                {"f16", kTensor, 4096, 419.5}, {"bf16", kTensor, 4096, 419.5},
                                {"i8", kTensor, 8192, 839}};

// Models of one architecture whose rates of a unit are the same; their figures follow from the
// clock.
constexpr GpuRate kGeForceAda[] = {
    {"f64", false, 4, 0},      {"f32", false, 256, 0},    {"f16", false, 256, 0},
    {"bf16", false, 256, 0},   {"tf32", kTensor, 256, 0}, {"f16", kTensor, 512, 0},
    {"bf16", kTensor, 512, 0}, {"f8", kTensor, 1024, 0},  {"i8", kTensor, 2048, 0}};
constexpr GpuRate kL20[] = {
    {"f64", false, 4, 0},          {"f16", false, 256, 59.8},    {"bf16", false, 256, 59.8},
    {"f32", false, 256, 59.8},     {"tf32", kTensor, 256, 59.8}, {"f16", kTensor, 512, 119.5},
    {"bf16", kTensor, 512, 119.5}, {"f8", kTensor, 1024, 239},   {"i8", kTensor, 1024, 239}};
constexpr GpuRate kGeForceBlackwell[] = {
    {"f64", false, 4, 0},      {"f32", false, 256, 0},    {"f16", false, 256, 0},
    {"bf16", false, 256, 0},   {"tf32", kTensor, 256, 0}, {"f16", kTensor, 512, 0},
    {"bf16", kTensor, 512, 0}, {"f8", kTensor, 1024, 0},  {"i8", kTensor, 2048, 0},
    {"f6", kTensor, 1024, 0},  {"f4", kTensor, 4096, 0}};
constexpr GpuRate kProBlackwell[] = {
    {"f64", false, 4, 0},       {"f32", false, 256, 0},    {"f16", false, 256, 0},
    {"bf16", false, 256, 0},    {"tf32", kTensor, 512, 0}, {"f16", kTensor, 1024, 0},
    {"bf16", kTensor, 1024, 0}, {"f8", kTensor, 2048, 0},  {"i8", kTensor, 2048, 0},
    {"f6", kTensor, 2048, 0},   {"f4", kTensor, 4096, 0}};
// Export models: few FP64 units, and of H20 a part of the tensor rate.
constexpr GpuRate kH800[] = {{"f64", false, 4, 0},
                             {"f32", false, 256, 66.9},
                             {"f16", false, 512, 133.8},
                             {"bf16", false, 512, 133.8},
                             {"tf32", kTensor, 2048, 494.7, kAtTensorClock},
                             {"f16", kTensor, 4096, 989.4, kAtTensorClock},
                             {"bf16", kTensor, 4096, 989.4, kAtTensorClock},
                             {"f8", kTensor, 8192, 1978.9, kAtTensorClock},
                             {"i8", kTensor, 8192, 1978.9, kAtTensorClock}};
constexpr GpuRate kH20[] = {{"f64", false, 6, 0},        {"f32", false, 285, 44},
                            {"tf32", kTensor, 480, 74},  {"f16", kTensor, 960, 148},
                            {"bf16", kTensor, 960, 148}, {"f8", kTensor, 1920, 296},
                            {"i8", kTensor, 1920, 296}};
constexpr GpuRate kRdna3[] = {{"f64", false, 8, 0},      {"f32", false, 256, 0},
                              {"f16", false, 512, 0},    {"f16", kTensor, 512, 0},
                              {"bf16", kTensor, 512, 0}, {"i8", kTensor, 512, 0}};
constexpr GpuRate kRdna4[] = {{"f64", false, 8, 0},      {"f32", false, 256, 0},
                              {"f16", false, 512, 0},    {"bf16", false, 256, 0},
                              {"f16", kTensor, 1024, 0}, {"bf16", kTensor, 1024, 0},
                              {"f8", kTensor, 2048, 0},  {"i8", kTensor, 2048, 0}};
constexpr GpuRate kXe2[] = {{"f64", false, 16, 0},     {"f32", false, 256, 0},
                            {"f16", false, 512, 0},    {"tf32", kTensor, 1024, 0},
                            {"f16", kTensor, 2048, 0}, {"bf16", kTensor, 2048, 0},
                            {"i8", kTensor, 4096, 0}};
constexpr GpuRate kMax1100[] = {{"f64", false, 256, 22.2}, {"f32", false, 256, 22.2},
                                {"f16", false, 512, 0},    {"tf32", kTensor, 2048, 0},
                                {"f16", kTensor, 4096, 0}, {"bf16", kTensor, 4096, 0},
                                {"i8", kTensor, 8192, 0}};

// Of one name, the first row is meant where nothing tells them apart.
constexpr GpuModel kTable[] = {
    {"P100 SXM2", "p100 sxm2|p100", "sm_60", 56, 1480, 1480, 732, 4, 16, kP100Sxm},
    {"P100 PCIe", "p100 pcie", "sm_60", 56, 1303, 1303, 732, 4, 16, kP100Pcie},
    {"V100 SXM2", "v100 sxm2|v100", "sm_70", 80, 1530, 1530, 900, 6, 16, kV100Sxm},
    {"V100 PCIe", "v100 pcie", "sm_70", 80, 1380, 1380, 900, 6, 16, kV100Pcie},
    {"V100S PCIe", "v100s", "sm_70", 80, 1597, 1597, 1134, 6, 32, kV100s},
    {"T4", "t4|t4g", "sm_75", 40, 1590, 1590, 320, 4, 16, kT4},
    {"TITAN RTX", "titan rtx", "sm_75", 72, 1770, 1770, 672, 6, 24, kTitanRtx},
    {"Quadro RTX 6000", "quadro rtx 6000", "sm_75", 72, 1770, 1770, 672, 6, 24, kTitanRtx},
    {"RTX 2080 Ti", "rtx 2080 ti", "sm_75", 68, 1545, 1545, 616, 5.5, 11, kRtx2080Ti},
    {"A100 SXM4 40GB", "a100 sxm4 40gb|a100 sxm4|a100", "sm_80", 108, 1410, 1410, 1555, 40, 40,
     kA100},
    {"A100 SXM4 80GB", "a100 sxm4 80gb|a100 sxm4|a100|a800 sxm4 80gb|a800", "sm_80", 108, 1410,
     1410, 2039, 40, 80, kA100},
    {"A100 PCIe 40GB", "a100 pcie 40gb|a100 pcie", "sm_80", 108, 1410, 1410, 1555, 40, 40, kA100},
    {"A100 PCIe 80GB", "a100 80gb pcie|a100 pcie|a800 80gb pcie", "sm_80", 108, 1410, 1410, 1935,
     40, 80, kA100},
    {"A30", "a30", "sm_80", 56, 1440, 1440, 933, 24, 24, kA30},
    {"A10", "a10", "sm_86", 72, 1695, 1695, 600, 6, 24, kA10},
    {"A10G", "a10g", "sm_86", 80, 1710, 1710, 600, 6, 24, kA10g},
    {"A40", "a40", "sm_86", 84, 1740, 1740, 696, 6, 48, kA40},
    {"RTX A4000", "rtx a4000|a4000", "sm_86", 48, 1560, 1560, 448, 4, 16, kA4000},
    {"RTX A6000", "rtx a6000|a6000", "sm_86", 84, 1800, 1800, 768, 6, 48, kA6000},
    {"RTX 3090", "rtx 3090", "sm_86", 82, 1695, 1695, 936, 6, 24, kRtx3090},
    {"Jetson AGX Orin 64GB", "orin", "sm_87", 16, 1300, 1300, 204.8, 4, 64, kOrin64},
    {"Jetson AGX Orin 32GB", "orin", "sm_87", 14, 930, 930, 204.8, 4, 32, kArch87},
    {"Jetson Orin NX 16GB", "orin", "sm_87", 8, 918, 918, 102.4, 4, 16, kArch87},
    {"L4", "l4", "sm_89", 58, 2040, 2040, 300, 48, 24, kL4},
    {"L40", "l40", "sm_89", 142, 2490, 2490, 864, 96, 48, kL40},
    {"L40S", "l40s", "sm_89", 142, 2520, 2520, 864, 96, 48, kL40s},
    {"RTX 6000 Ada", "rtx 6000 ada", "sm_89", 142, 2505, 2505, 960, 96, 48, kRtx6000Ada},
    {"RTX 4090", "rtx 4090", "sm_89", 128, 2520, 2520, 1008, 72, 24, kRtx4090},
    {"RTX 4090 D", "rtx 4090 d", "sm_89", 114, 2520, 2520, 1008, 72, 24, kGeForceAda},
    {"RTX 4080 SUPER", "rtx 4080 super", "sm_89", 80, 2550, 2550, 736, 64, 16, kGeForceAda},
    {"RTX 4080", "rtx 4080", "sm_89", 76, 2505, 2505, 716.8, 64, 16, kGeForceAda},
    {"RTX 4070 Ti SUPER", "rtx 4070 ti super", "sm_89", 66, 2610, 2610, 672, 48, 16, kGeForceAda},
    {"RTX 4070 Ti", "rtx 4070 ti", "sm_89", 60, 2610, 2610, 504, 48, 12, kGeForceAda},
    {"RTX 4070", "rtx 4070", "sm_89", 46, 2475, 2475, 504, 36, 12, kGeForceAda},
    {"RTX 4060 Ti", "rtx 4060 ti", "sm_89", 34, 2535, 2535, 288, 32, 16, kGeForceAda},
    {"RTX 4060", "rtx 4060", "sm_89", 24, 2460, 2460, 272, 24, 8, kGeForceAda},
    {"L20", "l20", "sm_89", 92, 2520, 2520, 864, 96, 48, kL20},
    {"H100 SXM5", "h100 hbm3|h100 sxm5|h100 sxm|h100", "sm_90", 132, 1980, 1830, 3350, 50, 80,
     kH100Sxm},
    {"H100 PCIe", "h100 pcie", "sm_90", 114, 1755, 1620, 2000, 50, 80, kH100Pcie},
    {"H100 NVL", "h100 nvl", "sm_90", 132, 1785, 1545, 3938, 50, 94, kHopperNvl},
    {"H200 SXM", "h200", "sm_90", 132, 1980, 1830, 4800, 50, 141, kH100Sxm},
    {"H200 NVL", "h200 nvl", "sm_90", 132, 1785, 1545, 4800, 50, 141, kHopperNvl},
    {"H800 SXM5", "h800", "sm_90", 132, 1980, 1830, 3350, 50, 80, kH800},
    {"H20", "h20", "sm_90", 78, 1980, 1980, 4000, 60, 96, kH20},
    {"GH200 96GB", "gh200", "sm_90", 132, 1980, 1830, 4000, 50, 96, kH100Sxm},
    {"GH200 144GB", "gh200 144g|gh200 hbm3e|gh200", "sm_90", 132, 1980, 1830, 4900, 50, 144,
     kH100Sxm},
    {"B200", "b200", "sm_100", 148, 1965, 1850, 8000, 126, 180, kB200},
    {"GB200", "gb200", "sm_100", 148, 2062, 2062, 8000, 126, 186, kGb200},
    {"B300", "b300", "sm_103", 148, 1965, 1850, 8000, 126, 275, kB300},
    {"GB300", "gb300", "sm_103", 148, 2062, 2062, 8000, 126, 279, kGb300},
    {"RTX 5090", "rtx 5090", "sm_120", 170, 2407, 2407, 1792, 96, 32, kRtx5090},
    {"RTX 5080", "rtx 5080", "sm_120", 84, 2617, 2617, 960, 64, 16, kRtx5080},
    {"RTX 5070 Ti", "rtx 5070 ti", "sm_120", 70, 2452, 2452, 896, 48, 16, kGeForceBlackwell},
    {"RTX 5070", "rtx 5070", "sm_120", 48, 2512, 2512, 672, 48, 12, kGeForceBlackwell},
    {"RTX 5060 Ti", "rtx 5060 ti", "sm_120", 36, 2572, 2572, 448, 32, 16, kGeForceBlackwell},
    {"RTX PRO 5000 Blackwell", "rtx pro 5000 blackwell", "sm_120", 110, 2617, 2617, 1344, 96, 48,
     kProBlackwell},
    {"RTX PRO 4500 Blackwell", "rtx pro 4500 blackwell", "sm_120", 82, 2617, 2617, 896, 64, 32,
     kProBlackwell},
    {"RTX PRO 6000 Blackwell", "rtx pro 6000 blackwell", "sm_120", 188, 2617, 2617, 1792, 128, 96,
     kRtxPro6000},
    {"GB10", "gb10", "sm_121", 48, 2543, 2543, 273, 24, 128, kGb10},
    {"MI210", "mi210", "gfx90a", 104, 1700, 1700, 1638, 8, 64, kMi210},
    {"MI250X (one GCD)", "mi250x", "gfx90a", 110, 1700, 1700, 1638, 8, 64, kMi250x},
    {"MI300X", "mi300x", "gfx942", 304, 2100, 2100, 5300, 4, 192, kMi300x},
    {"MI325X", "mi325x", "gfx942", 304, 2100, 2100, 6000, 4, 256, kMi300x},
    {"MI300A", "mi300a", "gfx942", 228, 2100, 2100, 5300, 4, 128, kMi300a},
    {"MI350X", "mi350x", "gfx950", 256, 2200, 2200, 8000, 4, 288, kMi350x},
    {"MI355X", "mi355x", "gfx950", 256, 2400, 2400, 8000, 4, 288, kMi355x},
    {"Radeon AI PRO R9700", "radeon ai pro r9700|r9700", "gfx1201", 64, 2920, 2920, 640, 8, 32,
     kR9700},
    {"Radeon RX 9070 XT", "rx 9070 xt", "gfx1201", 64, 2970, 2970, 640, 8, 16, kRx9070Xt},
    {"Radeon RX 9070", "rx 9070", "gfx1201", 56, 2520, 2520, 640, 8, 16, kRdna4},
    {"Radeon RX 7900 XTX", "rx 7900 xtx", "gfx1100", 96, 2500, 2500, 960, 6, 24, kRdna3},
    {"Radeon RX 7900 XT", "rx 7900 xt", "gfx1100", 84, 2400, 2400, 800, 6, 20, kRdna3},
    {"Radeon PRO W7900", "radeon pro w7900|w7900", "gfx1100", 96, 2495, 2495, 864, 6, 48, kRdna3},
    {"Arc A770", "arc a770", "xe_hpg", 32, 2100, 2100, 560, 16, 16, kArcA770},
    {"Arc B580", "arc b580", "xe2_hpg", 20, 2670, 2670, 456, 18, 12, kArcB580},
    {"Arc B570", "arc b570", "xe2_hpg", 18, 2500, 2500, 380, 13.5, 10, kXe2},
    {"Arc Pro B60", "arc pro b60", "xe2_hpg", 20, 2400, 2400, 456, 18, 24, kXe2},
    {"Max 1100", "gpu max 1100|max 1100", "xe_hpc", 56, 1550, 1550, 1229, 108, 48, kMax1100},
    {"Max 1550 (one stack)", "gpu max 1550|max 1550", "xe_hpc", 64, 1600, 1600, 1638, 204, 64,
     kMax1550},
};

constexpr GpuRate kArch60[] = {{"f64", false, 64}, {"f32", false, 128}, {"f16", false, 256}};
constexpr GpuRate kArch70[] = {
    {"f64", false, 64}, {"f32", false, 128}, {"f16", false, 256}, {"f16", kTensor, 1024}};
constexpr GpuRate kArch80[] = {
    {"f64", false, 64},     {"f64", kTensor, 128},   {"f32", false, 128},
    {"f16", false, 512},    {"bf16", false, 256},    {"tf32", kTensor, 1024},
    {"f16", kTensor, 2048}, {"bf16", kTensor, 2048}, {"i8", kTensor, 4096}};
constexpr GpuRate kArch90[] = {
    {"f64", false, 128},   {"f64", kTensor, 256},   {"f32", false, 256},    {"f16", false, 512},
    {"bf16", false, 512},  {"tf32", kTensor, 2048}, {"f16", kTensor, 4096}, {"bf16", kTensor, 4096},
    {"f8", kTensor, 8192}, {"i8", kTensor, 8192}};
constexpr GpuRate kFp32Of64Lanes[] = {{"f32", false, 128}};  // tensor and FP64 rates differ by SKU
constexpr GpuRate kFp32Of128Lanes[] = {{"f32", false, 256}};

// Lower-case words: "NVIDIA A100-SXM4-80GB" -> nvidia a100 sxm4 80gb.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// How many words of the best alternative the name has; 0 unless it has all of one.
int matching_words(std::string_view alternatives, const std::vector<std::string>& name) {
  int best = 0;
  while (!alternatives.empty()) {
    const std::size_t end = std::min(alternatives.find('|'), alternatives.size());
    const std::vector<std::string> wanted = words_of(alternatives.substr(0, end));
    const bool all = std::all_of(wanted.begin(), wanted.end(),
                                 [&](const std::string& word) { return has(name, word); });
    if (all) best = std::max(best, static_cast<int>(wanted.size()));
    alternatives.remove_prefix(std::min(end + 1, alternatives.size()));
  }
  return best;
}

// Words that make a device another one than its namesake in the table.
constexpr std::string_view kOtherDevices[] = {"laptop", "mobile", "mig",  "ti",   "super",
                                              "d",      "ada",    "max",  "grid", "pro",
                                              "x",      "vgpu",   "5000", "xt",   "gre"};

}  // namespace

std::span<const GpuModel> gpu_table() { return kTable; }

const GpuModel* find_gpu(std::string_view device_name, std::uint64_t memory_bytes) {
  if (device_name.size() > 200) return nullptr;
  const std::vector<std::string> name = words_of(device_name);
  const GpuModel* best = nullptr;
  int best_words = 0;
  double best_distance = 0;
  for (const GpuModel& model : kTable) {
    const int words = matching_words(model.names, name);
    if (words == 0) continue;
    const std::vector<std::string> own = words_of(model.names);
    if (std::any_of(std::begin(kOtherDevices), std::end(kOtherDevices),
                    [&](std::string_view word) { return has(name, word) && !has(own, word); }))
      continue;
    const double distance =
        memory_bytes == 0 ? 0 : std::abs(static_cast<double>(memory_bytes) / 1e9 - model.memory_gb);
    if (best == nullptr || words > best_words ||
        (words == best_words && distance < best_distance)) {
      best = &model;
      best_words = words;
      best_distance = distance;
    }
  }
  return best;
}

int units_of(const DeviceInfo& device) {
  if (device.compute_units > 0) return device.compute_units;
  const GpuModel* model = find_gpu(device.name, device.memory_bytes);
  return model != nullptr ? static_cast<int>(model->units) : 0;
}

int fp32_lanes(std::string_view arch) {
  if (arch.substr(0, 3) != "sm_") return 0;
  const std::string_view number = arch.substr(3);
  if (number == "60" || number.substr(0, 1) == "7" || number == "80") return 64;
  if (number.substr(0, 1) == "5" || number.substr(0, 1) == "6" || number.substr(0, 1) == "8" ||
      number.substr(0, 1) == "9" || number.substr(0, 2) == "10" || number.substr(0, 2) == "11" ||
      number.substr(0, 2) == "12")
    return 128;
  return 0;
}

std::span<const GpuRate> rates_of_arch(std::string_view arch) {
  if (arch == "sm_60") return kArch60;
  if (arch == "sm_70") return kArch70;
  if (arch == "sm_80") return kArch80;
  if (arch == "sm_87") return kArch87;
  if (arch == "sm_86" || arch == "sm_89") return kArch86;
  if (arch.substr(0, 5) == "sm_90") return kArch90;
  if (fp32_lanes(arch) == 64) return kFp32Of64Lanes;
  if (fp32_lanes(arch) == 128) return kFp32Of128Lanes;
  return {};
}

}  // namespace purlin
