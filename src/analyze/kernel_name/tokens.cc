// SPDX-License-Identifier: Apache-2.0
// Library kernels named by properties joined with underscores:
// nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT, ampere_fp16_s16816gemm_fp16_128x64_ldg8_…_tn.
#include "analyze/kernel_name/dialects.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace purlin::analyze {
namespace {

using Tokens = std::vector<std::string>;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "128x64", "128x64x32": whole tokens only.
bool is_extents(std::string_view token) {
  bool digit = false, cross = false;
  for (char c : token) {
    if (is_digit(c)) {
      digit = true;
    } else if (c == 'x' && digit) {
      cross = true, digit = false;
    } else {
      return false;
    }
  }
  return digit && cross;
}

std::string_view digits_at(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  return text.substr(0, end);
}

int token_number(std::string_view text) {
  const auto value = parse_int(text);
  return value && *value > 0 && *value < 1000 ? static_cast<int>(*value) : 0;
}

// "64x4": the tile's extent along K, and how many stages the pipeline has.
void add_depth(std::string_view token, KernelName& out) {
  const std::size_t cross = token.find('x');
  if (cross == std::string_view::npos || token.find('x', cross + 1) != std::string_view::npos)
    return;
  out.tile += fmt::format("x{}", token.substr(0, cross));
  out.stages = token_number(token.substr(cross + 1));
}

bool only_letters(std::string_view token, std::string_view allowed, std::size_t shortest,
                  std::size_t longest) {
  return token.size() >= shortest && token.size() <= longest &&
         token.find_first_not_of(allowed) == std::string_view::npos;
}

// "sm90" -> "sm_90", "ampere" -> "sm_80"; "" for other tokens.
std::string arch_of(std::string_view token) {
  struct Generation {
    std::string_view name, arch;
  };
  constexpr Generation kGenerations[] = {
      {"kepler", "sm_35"}, {"maxwell", "sm_50"}, {"pascal", "sm_60"},
      {"volta", "sm_70"},  {"turing", "sm_75"},  {"ampere", "sm_80"},
      {"ada", "sm_89"},    {"hopper", "sm_90"},  {"Volta", "sm_70"}};
  for (const Generation& generation : kGenerations)
    if (generation.name == token) return std::string(generation.arch);
  if (!starts_with(token, "sm")) return "";
  const std::string_view digits = digits_at(token.substr(2));
  if (digits.size() < 2 || digits.size() > 3 || token.size() > 3 + digits.size()) return "";
  return fmt::format("sm_{}", token.substr(2));
}

std::string joined(const Tokens& tokens, std::size_t from = 0) {
  std::string out;
  for (std::size_t i = from; i < tokens.size(); ++i)
    if (!tokens[i].empty()) out += (out.empty() ? "" : ", ") + tokens[i];
  return out;
}

std::string joined_name(const Tokens& tokens) {
  std::string out;
  for (const std::string& token : tokens) out += (out.empty() ? "" : "_") + token;
  return out;
}

std::string words(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (std::string_view part : parts)
    if (!part.empty()) out += fmt::format("{}{}", out.empty() ? "" : " ", part);
  return out;
}

// What a shape of instruction tells: that of tensor cores have one.
//   s16816gemm, h884cudnn, s64x128x16gemm, s128x128x8tf32gemm, i8816gemm, d884gemm; sgemm, scudnn
struct MathToken {
  std::string_view accumulator;  // letter
  std::string_view instruction;  // digits and crosses
  bool tf32 = false;
  std::string_view op;  // "gemm", "fprop", …
};

bool read_math(std::string_view token, MathToken& out) {
  constexpr std::string_view kOps[] = {"gemm", "cudnn", "fprop", "dgrad", "wgrad", "gemv"};
  for (std::string_view op : kOps) {
    if (!ends_with(token, op)) continue;
    std::string_view rest = token.substr(0, token.size() - op.size());
    out.op = op;
    if (ends_with(rest, "sp")) rest.remove_suffix(2);  // structured sparsity
    out.tf32 = ends_with(rest, "tf32");
    if (out.tf32) rest.remove_suffix(4);
    if (!rest.empty() && std::isalpha(static_cast<unsigned char>(rest[0])) != 0) {
      out.accumulator = rest.substr(0, 1);
      rest.remove_prefix(1);
    }
    if (rest.find_first_not_of("0123456789x") != std::string_view::npos) return false;
    out.instruction = rest;
    return out.accumulator.empty() ||
           std::string_view("shdiczb").find(out.accumulator) != std::string_view::npos;
  }
  return false;
}

std::string_view letter_type(std::string_view letter) {
  if (letter == "s") return "f32";
  if (letter == "h") return "f16";
  if (letter == "d") return "f64";
  if (letter == "i") return "i32";
  if (letter == "c") return "c64";
  if (letter == "z") return "c128";
  return "";
}

// nvjet_[sm90_]tst_256x128_64x4_1x2[_2cta]_h_bz[_coopA][_bias][_splitK]_TNT. Types: A and B (or
// both in one), C, compute, D: q e4m3, r e5m2, o e2m1, t bf16, h f16, s f32.
bool read_nvjet(const Tokens& tokens, KernelName& out) {
  if (tokens.size() < 4 || tokens[0] != "nvjet") return false;
  std::size_t at = 1;
  if (std::string arch = arch_of(tokens[at]); !arch.empty()) out.arch = arch, ++at;
  const std::string& types = tokens[at++];
  const auto type = [](char letter) -> std::string_view {
    return letter == 'q'   ? "f8e4m3"
           : letter == 't' ? "bf16"
           : letter == 'h' ? "f16"
           : letter == 's' ? "f32"
           : letter == 'd' ? "f64"
           : letter == 'o' ? "f4e2m1"
           : letter == 'r' ? "f8e5m2"
                           : "";
  };
  out.dtype = types.empty() ? "" : type(types[0]);
  if (types.size() == 3) out.accumulator = type(types[1]);
  if (types.size() == 5) out.accumulator = type(types[3]);
  out.tensor = TensorCores::kYes;
  Tokens others = {types.size() > 1 ? types : ""};
  if (at < tokens.size() && tokens[at] == "mma") others.push_back(tokens[at++]);
  if (at < tokens.size() && is_extents(tokens[at])) {
    out.tile = tokens[at++];
    if (at < tokens.size() && is_extents(tokens[at])) {
      add_depth(tokens[at], out);
      others.push_back(tokens[at++]);
    } else if (at < tokens.size() && token_number(tokens[at]) > 0) {
      out.stages = token_number(tokens[at]);
      others.push_back(tokens[at++]);
    }
  }
  for (; at < tokens.size(); ++at) {
    const std::string& token = tokens[at];
    if (at + 1 == tokens.size() && only_letters(token, "NT", 3, 4)) {
      out.layout = token;
      continue;
    }
    if (starts_with(token, "splitK")) out.split_k = true;
    others.push_back(token);
  }
  out.brief = words({"nvjet", out.dtype, out.tile, out.layout});
  out.arguments = joined(others);
  return true;
}

// Types of XMMA: "f16f16", "e4m3bf16", "f32f32", "i8f32": the first is that of A.
std::string_view leading_type(std::string_view token) {
  for (std::string_view name :
       {"bf16", "tf32", "e4m3", "e5m2", "e2m1", "f16", "f32", "f64", "i8", "u8"})
    if (starts_with(token, name)) return element_type(name);
  return "";
}

// sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_…
bool read_xmma(const Tokens& tokens, KernelName& out) {
  const auto xmma = std::find(tokens.begin(), tokens.end(), "xmma");
  if (xmma == tokens.end() || xmma + 2 >= tokens.end()) return false;
  std::string prefix;
  for (auto token = tokens.begin(); token != xmma; ++token) {
    if (std::string arch = arch_of(*token); !arch.empty()) out.arch = arch;
    prefix += *token + "_";
  }
  Tokens others;
  std::string_view first, second;
  bool simt = false, tf32 = false, tensor = false;
  for (auto token = xmma + 2; token != tokens.end(); ++token) {
    const std::string_view text = *token;
    if (text.find("tf32") != std::string_view::npos) tf32 = true;
    if (starts_with(text, "tilesize")) {
      out.tile = text.substr(8);
    } else if (starts_with(text, "stage") && token_number(text.substr(5)) > 0) {
      out.stages = token_number(text.substr(5));
    } else if (first.empty() && !leading_type(text).empty()) {
      first = text;
    } else if (!first.empty() && second.empty() && !leading_type(text).empty()) {
      second = text;
    } else if (out.layout.empty() && only_letters(text, "nt", 2, 2)) {
      out.layout = text;
    } else if (starts_with(text, "nhwc") || starts_with(text, "nchw") ||
               starts_with(text, "ndhwc")) {
      if (out.layout.empty()) out.layout = starts_with(text, "nd") ? "ndhwc" : text.substr(0, 4);
    } else {
      tensor = tensor || starts_with(text, "tensor") || starts_with(text, "warpgroupsize");
      simt = simt || text == "ffma" || text == "simt" || text == "dfma";
      others.push_back(*token);
    }
  }
  if (first.empty() && out.tile.empty()) return false;
  out.dtype = tf32 ? "tf32" : leading_type(first);
  for (std::string_view type : {"f32", "f64", "f16", "i32"})
    if (ends_with(second, type)) out.accumulator = type;
  // Of narrow types XMMA has tensor-core kernels only.
  const bool narrow = !out.dtype.empty() && out.dtype != "f32" && out.dtype != "f64";
  out.tensor = simt               ? TensorCores::kNo
               : tensor || narrow ? TensorCores::kYes
                                  : TensorCores::kUnknown;
  out.split_k = std::find(others.begin(), others.end(), "splitK") != others.end();
  out.brief = words({prefix + "xmma", *(xmma + 1), out.dtype, out.tile, out.layout});
  out.arguments = joined(others);
  return true;
}

// What cuBLAS, cuDNN and CUTLASS (procedural names) share: tokens for types, one for the
// instruction, tile, "32x5" or "stages_32x5" for depth and stages, layout.
//   ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn
//   volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_small_nhwc2nchw_tn_v1
//   cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x5_nn_align8
//   cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_tnn_align8_…
bool read_blas(const Tokens& tokens, KernelName& out) {
  std::size_t math_at = tokens.size();
  MathToken math;
  for (std::size_t i = 0; i < tokens.size() && math_at == tokens.size(); ++i)
    if (read_math(tokens[i], math)) math_at = i;
  const bool cutlass = starts_with(tokens[0], "cutlass");
  const bool generation = !arch_of(tokens[0]).empty() || tokens[0] == "trt";
  if (math_at == tokens.size() || !(cutlass || generation)) return false;

  bool tensorop = false, simt = false, stages_next = false;
  std::string_view explicit_type, types_after[3];
  std::size_t counted = 0;
  Tokens others;
  std::string prefix = tokens[0];
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    if (std::string arch = arch_of(token); !arch.empty()) {
      out.arch = arch;
      if (i > 0) prefix += "_" + token;
      continue;
    }
    if (i == 0) continue;
    if (i == math_at) {
      if (!math.accumulator.empty() || !math.instruction.empty())
        others.push_back(token.substr(0, token.size() - math.op.size()));
      continue;
    }
    if (cutlass && i == 1 && token_number(token) >= 50) {  // cutlass_80_…
      out.arch = "sm_" + token;
      prefix += "_" + token;
    } else if (token == "tensorop" || token == "bstensorop" || token == "sptensorop" ||
               token == "wmma" || token == "hmma" || token == "imma") {
      tensorop = true;
      if (token == "hmma") explicit_type = "f16";  // the sum and the result may have another type
    } else if (token == "simt") {
      simt = true;
    } else if (const std::string_view type = element_type(token); !type.empty() && token != "u4") {
      if (i < math_at && explicit_type.empty()) explicit_type = type;
      if (i > math_at && counted < 3) types_after[counted++] = type;
    } else if (is_extents(token)) {
      const auto crosses = std::count(token.begin(), token.end(), 'x');
      if (out.tile.empty()) {
        out.tile = crosses > 2 ? token.substr(0, token.rfind('x')) : token;
      } else if (crosses == 1 && out.stages == 0 && (cutlass || stages_next) &&
                 std::count(out.tile.begin(), out.tile.end(), 'x') == 1) {
        add_depth(token, out);
      } else {
        others.push_back(token);  // cluster
      }
      stages_next = false;
    } else if (token == "stages") {
      stages_next = true;
    } else if (starts_with(token, "stage") && token_number(token.substr(5)) > 0) {
      out.stages = token_number(token.substr(5));
    } else if (only_letters(token, "ntc", 2, 3)) {
      out.layout = token;
    } else if (starts_with(token, "nhwc") || starts_with(token, "ndhwc")) {
      if (out.layout.empty()) out.layout = starts_with(token, "nd") ? "ndhwc" : token.substr(0, 4);
    } else {
      if (starts_with(token, "splitK") || starts_with(token, "splitk")) out.split_k = true;
      if (token != "0") others.push_back(token);
    }
  }
  const bool instruction = !math.instruction.empty();
  const std::string_view letter = math.accumulator;
  out.accumulator = letter_type(letter);
  if (counted == 3 && letter.empty()) out.accumulator = types_after[2];
  if (math.tf32) {
    out.dtype = "tf32";
  } else if (!explicit_type.empty()) {
    out.dtype = explicit_type;
  } else if (counted == 3) {
    out.dtype = types_after[0];  // A, B, accumulator, C, D
  } else if (letter == "i") {
    out.dtype = counted > 0 ? types_after[0] : "i8";
  } else if (letter == "s" && instruction) {
    // f32 through tensor cores; those of Volta and Turing multiply f16 only.
    out.dtype = starts_with(math.instruction, "884") ? "f16" : "tf32";
  } else if (counted > 0 && letter.empty()) {
    out.dtype = types_after[0];
  } else {
    out.dtype = letter_type(letter);
  }
  const bool winograd = std::find(tokens.begin(), tokens.end(), "winograd") != tokens.end();
  if (tensorop || (instruction && !simt)) {
    out.tensor = TensorCores::kYes;
  } else if (simt || winograd || (!letter.empty() && !instruction)) {
    out.tensor = TensorCores::kNo;
  }
  std::string op = std::string(math.op);
  if (!letter.empty() && !instruction) op = tokens[math_at];
  if (winograd) op += "_winograd";
  others.erase(std::remove(others.begin(), others.end(), "winograd"), others.end());
  const std::string_view shown_type = letter.empty() || instruction ? out.dtype : "";
  out.brief = words({prefix + "_" + op, shown_type, out.tile, out.layout});
  out.arguments = joined(others);
  if (others.empty()) out.brief = joined_name(tokens);  // nothing is left out: as it is called
  return true;
}

// cutlass3x_sm100_tensorop_s32x256x16_conv3d_fprop_…_bf16_bf16_f32_void_bf16_…_32x256x64_…
bool read_cutlass_conv(const Tokens& tokens, KernelName& out) {
  if (!starts_with(tokens[0], "cutlass")) return false;
  std::string_view op;
  Tokens others;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    const std::string_view type = element_type(token);
    if (std::string arch = arch_of(token); !arch.empty()) {
      out.arch = arch;
    } else if (token == "tensorop") {
      out.tensor = TensorCores::kYes;
    } else if (token == "fprop" || token == "dgrad" || token == "wgrad") {
      op = token;
    } else if (!type.empty() && out.dtype.empty()) {
      out.dtype = type;
    } else if (is_extents(token) && out.tile.empty()) {
      out.tile = token;
    } else if ((starts_with(token, "nhwc") || starts_with(token, "ndhwc")) && out.layout.empty()) {
      out.layout = token;
    } else if (type.empty() && token != "void") {
      others.push_back(token);
    }
  }
  if (op.empty()) return false;
  out.brief = words({tokens[0], op, out.dtype, out.tile, out.layout});
  out.arguments = joined(others);
  return true;
}

// cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_…: "f16" there
// means any type of 16 bits, so it tells no type.
bool read_cudnn_sdpa(const Tokens& tokens, KernelName& out) {
  const auto sdpa = std::find(tokens.begin(), tokens.end(), "sdpa");
  if (tokens[0] != "cudnn" || sdpa == tokens.end()) return false;
  Tokens others;
  std::string pass;
  for (auto token = sdpa + 1; token != tokens.end(); ++token) {
    if (std::string arch = arch_of(*token); !arch.empty()) {
      out.arch = arch;
    } else if (is_extents(*token) && out.tile.empty()) {
      out.tile = *token;
    } else if (*token == "fprop" || *token == "bprop") {
      pass = *token;
    } else {
      others.push_back(*token);
    }
  }
  out.tensor = TensorCores::kYes;
  out.brief = words({"cudnn sdpa", pass, out.tile});
  out.arguments = joined(others);
  return true;
}

// fmha_cutlassF_bf16_aligned_64x128_rf_sm80
bool read_fmha(const Tokens& tokens, KernelName& out) {
  if (tokens.size() < 3 || tokens[0] != "fmha" || !starts_with(tokens[1], "cutlass")) return false;
  out.dtype = element_type(tokens[2]);
  for (const std::string& token : tokens) {
    if (is_extents(token) && out.tile.empty()) out.tile = token;
    if (std::string arch = arch_of(token); !arch.empty()) out.arch = arch;
  }
  if (out.arch == "sm_80" || out.arch == "sm_75" || (out.arch == "sm_70" && out.dtype == "f16"))
    out.tensor = TensorCores::kYes;
  return !out.dtype.empty();
}

// Cijk_Ailk_Bljk_BBS_BH_Bias_…_MT256x192x64_MI16x16x1_…_GSU4_ISA942_…: l is summed over.
bool read_tensile(const Tokens& tokens, KernelName& out) {
  const auto head = std::find(tokens.begin(), tokens.end(), "Cijk");
  if (head == tokens.end() || tokens.end() - head < 4) return false;
  const std::string &a = head[1], &b = head[2], &types = head[3];
  out.layout = std::string(a == "Alik" ? "T" : "N") + (b == "Bjlk" ? "T" : "N");
  struct Code {
    std::string_view code, dtype;
  };
  constexpr Code kCodes[] = {{"F8", "f8e4m3"}, {"B8", "f8e5m2"}, {"I8", "i8"}, {"4xi8", "i8"},
                             {"H", "f16"},     {"B", "bf16"},    {"S", "f32"}, {"D", "f64"},
                             {"C", "c64"},     {"Z", "c128"},    {"X", "tf32"}};
  for (const Code& code : kCodes) {
    if (!starts_with(types, code.code)) continue;
    out.dtype = code.dtype;
    break;
  }
  if (types.size() == 3 && types[2] == 'S') out.accumulator = "f32";
  Tokens others;
  for (auto token = head + 3; token != tokens.end(); ++token) {
    const std::string_view text = *token;
    if (starts_with(text, "MT") && is_extents(text.substr(2))) {
      out.tile = text.substr(2);
      continue;
    }
    if (starts_with(text, "MI") && is_extents(text.substr(2))) out.tensor = TensorCores::kYes;
    if (starts_with(text, "ISA") && text.size() > 3 && text.size() < 8)
      out.arch = fmt::format("gfx{}", text.substr(3));
    if (starts_with(text, "GSU") && token_number(text.substr(3)) > 1) out.split_k = true;
    others.push_back(*token);
  }
  out.brief = words({"Cijk", out.dtype, out.tile, out.layout});
  out.arguments = joined(others);
  return true;
}

// igemm_fwd_gtcx35_nhwc_fp16_bx0_ex0_bt256x128x32_wt32x32x8_…; miopenSp3AsmConv_…_gfx9_fp32_…
bool read_miopen(const Tokens& tokens, KernelName& out) {
  const bool igemm = tokens[0] == "igemm";
  if (!igemm && !starts_with(tokens[0], "miopen")) return false;
  Tokens others;
  for (std::size_t i = igemm ? 2 : 1; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    if (starts_with(token, "bt") && is_extents(token.substr(2))) {
      out.tile = token.substr(2);
    } else if (out.dtype.empty() && !element_type(token).empty()) {
      out.dtype = element_type(token);
    } else if (token == "nhwc" || token == "nchw") {
      out.layout = token;
    } else if (starts_with(token, "gfx")) {
      out.arch = token;
    } else {
      if (starts_with(token, "gtcx") || starts_with(token, "gtcw")) out.tensor = TensorCores::kYes;
      others.push_back(tokens[i]);
    }
  }
  out.brief =
      words({igemm ? "igemm " + tokens[std::min<std::size_t>(1, tokens.size() - 1)] : tokens[0],
             out.dtype, out.tile, out.layout});
  out.arguments = joined(others);
  return true;
}

// ncclDevKernel_AllReduce_Sum_bf16_RING_LL. AllGather and its like move bytes of any type: the
// type in the name is that of their only build. A generic kernel does either.
bool read_nccl(const Tokens& tokens, KernelName& out) {
  if (!starts_with(tokens[0], "ncclDevKernel") && !starts_with(tokens[0], "ncclKernel") &&
      !starts_with(tokens[0], "ncclSymDevKernel") && !starts_with(tokens[0], "ncclSymkDevKernel"))
    return false;
  const bool reduces = tokens.size() > 1 && tokens[1].find("Reduce") != std::string::npos;
  for (const std::string& token : tokens)
    if (reduces && out.dtype.empty()) out.dtype = element_type(token);
  const bool moves = std::any_of(tokens.begin(), tokens.end(), [](const std::string& token) {
    return token == "AllGather" || token == "SendRecv" || token == "Broadcast" ||
           token == "AllToAll" || token == "Gather" || token == "Scatter";
  });
  if (moves) out.dtype = "bytes";
  out.tensor = TensorCores::kNo;
  return true;
}

// bmm_E4m3_E4m3E4m3_Fp32_t128x64x128u2_s6_et64x64_m64x64x32_c1x1x1_rM_TN_…: result, A and B,
// accumulator (TensorRT-LLM).
bool read_trtllm_bmm(const Tokens& tokens, KernelName& out) {
  if (tokens.size() < 5 || (tokens[0] != "bmm" && tokens[0] != "gemm") ||
      element_type(tokens[1]).empty())
    return false;
  for (std::string_view type : {"Bfloat16", "Fp16", "E4m3", "E5m2", "E2m1", "MxE4m3", "MxE5m2",
                                "MxE2m1", "MxE2m3", "MxE3m2", "Mxe4m3", "Mxe2m1"})
    if (starts_with(tokens[2], type)) out.dtype = element_type(type);
  out.accumulator = element_type(tokens[3]);
  Tokens others = {tokens[1]};
  for (std::size_t i = 4; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    if (token.empty()) continue;
    const std::string_view extents = token.substr(1, token.find('u') - 1);
    if (starts_with(token, "t") && is_extents(extents)) {
      out.tile = extents;
    } else if (starts_with(token, "s") && token_number(token.substr(1)) > 0) {
      out.stages = token_number(token.substr(1));
    } else if (only_letters(token, "NT", 2, 2)) {
      out.layout = token;
    } else {
      if (std::string arch = arch_of(token); !arch.empty()) out.arch = std::move(arch);
      others.push_back(tokens[i]);
    }
  }
  out.tensor = TensorCores::kYes;
  out.brief = words({tokens[0], out.dtype, out.tile, out.layout});
  out.arguments = joined(others);
  return true;
}

// fmhaSm100aKernel_QkvBfloat16OBfloat16H128PagedKvDenseP64VarSeqQ128Kv128PersistentContext
// (TensorRT-LLM): Q, K and V of one type, or "QE4m3KvE2m1O…".
bool read_trtllm_fmha(const Tokens& tokens, KernelName& out) {
  if (!starts_with(tokens[0], "fmhaSm")) return false;
  const std::string_view digits = digits_at(std::string_view(tokens[0]).substr(6));
  if (digits.empty()) return false;
  std::string_view arch = std::string_view(tokens[0]).substr(4, 2 + digits.size() + 1);
  if (arch.back() != 'a' && arch.back() != 'f') arch.remove_suffix(1);
  out.arch = "sm_" + std::string(arch.substr(2));
  std::string_view types = tokens[1];
  types.remove_prefix(starts_with(types, "Qkv") ? 3 : starts_with(types, "Q") ? 1 : 0);
  for (std::string_view type : {"Bfloat16", "Fp16", "E4m3", "E5m2", "E2m1"})
    if (starts_with(types, type)) out.dtype = element_type(type);
  const auto extent = [&](std::string_view word) {
    for (std::size_t at = types.find(word); at != std::string_view::npos;
         at = types.find(word, at + 1))
      if (const std::string_view number = digits_at(types.substr(at + word.size()));
          !number.empty())
        return std::string(number);
    return std::string();
  };
  const std::string query = extent("Q"), key = extent("Kv");
  if (!query.empty() && !key.empty()) out.tile = query + "x" + key;
  out.accumulator = "f32";
  out.tensor = TensorCores::kYes;
  out.brief = words({"fmha " + out.arch, out.dtype, out.tile});
  out.arguments = joined(tokens, 1);
  return true;
}

// Triton kernels that spell out their config: …_BLOCK_SIZE_M_64_BLOCK_SIZE_N_128_BLOCK_SIZE_K_128_…
bool read_triton_config(const Tokens& tokens, KernelName& out) {
  std::string extents[3];
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    if (tokens[i] != "BLOCK" || tokens[i + 1] != "SIZE" || tokens[i + 2].size() != 1) continue;
    const std::size_t axis = std::string_view("MNK").find(tokens[i + 2]);
    if (axis < 3 && token_number(tokens[i + 3]) > 0) extents[axis] = tokens[i + 3];
  }
  if (extents[0].empty() || extents[1].empty()) return false;
  out.tile = extents[0] + "x" + extents[1] + (extents[2].empty() ? "" : "x" + extents[2]);
  std::string head;
  Tokens others;
  for (const std::string& token : tokens) {
    const bool upper = !token.empty() && std::isupper(static_cast<unsigned char>(token[0])) != 0;
    if (others.empty() && !upper) {
      head += (head.empty() ? "" : "_") + token;
    } else {
      others.push_back(token);
    }
  }
  if (head.empty()) return false;
  out.brief = words({starts_with(head, "_") ? head.substr(1) : head, out.tile});
  out.arguments = joined(others);
  return true;
}

// OpenAI's Triton kernels: _matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu has the types of the
// output, of what comes in and of the weights, which are widened to that; _p_matmul_ogs_… is
// persistent. Others end in their type: _finalize_matmul_scatter_bf16.
bool read_triton_matmul(const Tokens& tokens, KernelName& out) {
  const auto matmul = std::find(tokens.begin(), tokens.end(), "matmul");
  if (!tokens[0].empty() || matmul == tokens.end()) return false;
  std::string_view dtype = element_type(tokens.back());
  std::string extents, layout;
  for (const std::string& token : tokens) {
    const std::vector<std::string> parts = split(token, 'x');
    if (is_extents(token))
      extents = token;
    else if (parts.size() > 2 && !element_type(parts[0]).empty() && !element_type(parts[1]).empty())
      dtype = element_type(parts[1]);
    else if (extents.empty() && only_letters(token, "NT", 3, 3))
      layout = token;
  }
  if (dtype.empty()) return false;
  out.dtype = dtype;
  out.layout = layout;
  out.family = "triton";
  // M, N, K and how many share the sum over K.
  if (const std::vector<std::string> parts = split(extents, 'x'); parts.size() >= 3) {
    out.tile = fmt::format("{}x{}x{}", parts[0], parts[1], parts[2]);
    out.tensor = TensorCores::kYes;
  }
  return true;
}

using TokenReader = bool (*)(const Tokens& tokens, KernelName& out);
constexpr TokenReader kReaders[] = {read_nvjet,  read_xmma,         read_cudnn_sdpa,
                                    read_fmha,   read_tensile,      read_nccl,
                                    read_miopen, read_trtllm_fmha,  read_trtllm_bmm,
                                    read_blas,   read_cutlass_conv, read_triton_config};

}  // namespace

std::string_view element_type(std::string_view token) {
  struct Spelling {
    std::string_view token, dtype;
  };
  constexpr Spelling kSpellings[] = {{"fp16", "f16"},
                                     {"fp32", "f32"},
                                     {"fp64", "f64"},
                                     {"tf32", "tf32"},
                                     {"e4m3", "f8e4m3"},
                                     {"e5m2", "f8e5m2"},
                                     {"e2m1", "f4e2m1"},
                                     {"int8", "i8"},
                                     {"ue4m3", "f8e4m3"},
                                     {"half_t", "f16"},
                                     {"bfloat16_t", "bf16"},
                                     {"tfloat32_t", "tf32"},
                                     {"float_e4m3_t", "f8e4m3"},
                                     {"float_e5m2_t", "f8e5m2"},
                                     {"Bfloat16", "bf16"},
                                     {"Fp16", "f16"},
                                     {"Fp32", "f32"},
                                     {"E4m3", "f8e4m3"},
                                     {"E2m1", "f4e2m1"},
                                     {"Mxe4m3", "f8e4m3"},
                                     {"Mxe2m1", "f4e2m1"},
                                     {"MxE4m3", "f8e4m3"},
                                     {"MxE5m2", "f8e5m2"},
                                     {"MxE2m1", "f4e2m1"},
                                     {"MxE2m3", "f6e2m3"},
                                     {"MxE3m2", "f6e3m2"},
                                     {"E5m2", "f8e5m2"},
                                     {"e2m3", "f6e2m3"},
                                     {"e3m2", "f6e3m2"},
                                     {"nvfp4", "f4e2m1"},
                                     {"mxfp4", "f4e2m1"},
                                     {"mxf4", "f4e2m1"},
                                     {"nvf4", "f4e2m1"},
                                     {"fp4", "f4e2m1"},
                                     {"mxfp8", "f8e4m3"},
                                     {"mxf8", "f8e4m3"},
                                     {"float_e2m3_t", "f6e2m3"},
                                     {"float_e3m2_t", "f6e3m2"},
                                     {"f8_fnuz_t", "f8e4m3"},
                                     {"bhalf_t", "bf16"},
                                     {"__bf16", "bf16"},
                                     {"_Float16", "f16"},
                                     {"fp8e4nv", "f8e4m3"},  // Triton's
                                     {"fp8e4b8", "f8e4m3"},
                                     {"fp8e5", "f8e5m2"},
                                     {"fp8e5b16", "f8e5m2"},
                                     {"hip_bfloat16", "bf16"},
                                     {"nv_bfloat16", "bf16"},
                                     {"float_e2m1_t", "f4e2m1"}};
  for (const Spelling& spelling : kSpellings)
    if (spelling.token == token) return spelling.dtype;
  // CUTLASS puts the type of the block's scale before that of the elements: "ue4m3xe2m1".
  if (const std::size_t cross = token.find('x'); starts_with(token, "ue") && cross == 5) {
    const std::string_view element = token.substr(cross + 1);
    return element == "f4" ? "f4e2m1" : element == "f8" ? "f8e4m3" : element_type(element);
  }
  return dtype_of(token);
}

bool read_token_dialect(std::string_view name, KernelName& out) {
  constexpr std::size_t kMaxTokens = 128;
  if (name.empty() || name.size() > 2000) return false;
  const Tokens tokens = split(name, '_');
  if (tokens.size() < 2 || tokens.size() > kMaxTokens) return false;
  if (tokens[0].empty()) return read_triton_matmul(tokens, out);
  for (TokenReader reader : kReaders) {
    KernelName attempt = out;
    if (reader(tokens, attempt)) {
      out = std::move(attempt);
      return true;
    }
  }
  return false;
}

}  // namespace purlin::analyze
