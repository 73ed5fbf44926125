// SPDX-License-Identifier: Apache-2.0
// The rows of the option table whose texts have a form of their own. Errors: the text has another form.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>

#include "config/methods.h"
#include "config/option_member.h"
#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// The names of values.
inline constexpr std::array<NamedValue<WeightPrecision>, 7> kWeightTypes = {{{"auto", WeightPrecision::kAuto},
                                                                             {"f32", WeightPrecision::kF32},
                                                                             {"bf16", WeightPrecision::kBF16},
                                                                             {"f8", WeightPrecision::kF8},
                                                                             {"q8_0", WeightPrecision::kQ8_0},
                                                                             {"q8", WeightPrecision::kQ8},
                                                                             {"q4", WeightPrecision::kQ4}}};
inline constexpr std::array<NamedValue<KvCacheType>, 6> kKvTypes = {{{"auto", KvCacheType::kAuto},
                                                                     {"f32", KvCacheType::kF32},
                                                                     {"bf16", KvCacheType::kBF16},
                                                                     {"f16", KvCacheType::kF16},
                                                                     {"e4m3", KvCacheType::kE4M3},
                                                                     {"q8_0", KvCacheType::kQ8_0}}};
inline constexpr std::array<NamedValue<DraftAhead>, 3> kDraftAhead = {
    {{"auto", DraftAhead::kAuto}, {"on", DraftAhead::kOn}, {"off", DraftAhead::kOff}}};
inline constexpr std::array<NamedValue<ThreadPinning>, 3> kPinning = {
    {{"auto", ThreadPinning::kAuto}, {"on", ThreadPinning::kOn}, {"off", ThreadPinning::kOff}}};
inline constexpr std::array<NamedValue<std::optional<Pooling>>, 3> kPoolings = {
    {{"last", Pooling::kLast}, {"mean", Pooling::kMean}, {"rank", std::nullopt}}};
inline constexpr std::array<NamedValue<ComputeDevice>, 4> kDevices = {
    {{"auto", ComputeDevice::kAuto},
     {"cpu", ComputeDevice::kCpu},
     {"cuda", ComputeDevice::kCuda},
     {"emulated", ComputeDevice::kEmulated}}};
inline constexpr std::array<NamedValue<bool>, 2> kOnOff = {{{"on", true}, {"off", false}}};
inline constexpr std::array<NamedValue<std::optional<bool>>, 2> kPolicies = {
    {{"auto", true}, {"fixed", false}}};
inline constexpr auto kAcceptanceRules = [] {
  std::array<NamedValue<AcceptanceRule>, std::size(kAcceptanceRuleNames)> names;
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = {kAcceptanceRuleNames[i], static_cast<AcceptanceRule>(i)};
  return names;
}();

constexpr NumberRange kLogitBiases = {-1e4, 1e4};

Status read_memory(Settings& settings, const OptionValue& value);  // "800M"
// "NAME=PATH", "PATH", either with ":SCALE" behind it, several separated by commas, or a map in JSON.
Status read_adapters(Settings& settings, const OptionValue& value);
std::string adapters_text(const Settings& settings);
Status read_request_adapters(Request& request,
                             const OptionValue& value);  // "NAME" or "NAME:SCALE" in each text, or "none"
Status read_prompt_cache_size(Settings& settings, const OptionValue& value);
std::string prompt_cache_size_text(const Settings& settings);
Status read_models_memory(Settings& settings, const OptionValue& value);
std::string models_memory_text(const Settings& settings);
Status read_row_counts(Settings& settings, const OptionValue& value);  // "1,8,16x3"
std::string row_counts_text(const Settings& settings);
Status read_context(Settings& settings, const OptionValue& value);  // "8192", "8k", "auto"
std::string context_text(const Settings& settings);
// "20", "all" or -1, "auto"
Status read_gpu_layers(Settings& settings, const OptionValue& value);
std::string gpu_layers_text(const Settings& settings);
Status read_cpu_experts(Settings& settings, const OptionValue& value);
std::string cpu_experts_text(const Settings& settings);
Status read_root_path(Settings& settings, const OptionValue& value);  // "/llm"
std::string root_path_text(const Settings& settings);
// Each text has one or more, separated by commas.
Status read_api_keys(Settings& settings, const OptionValue& value);
Status read_model_names(Settings& settings, const OptionValue& value);
std::string model_names_text(const Settings& settings);
Status read_origins(Settings& settings, const OptionValue& value);  // or a list in JSON
std::string origins_text(const Settings& settings);
// Routes separated by commas, in each text.
Status read_routes(Settings& settings, const OptionValue& value);
std::string routes_text(const Settings& settings);
Status read_remote_drafting(Settings& settings, const OptionValue& value);  // a flag
Status read_logit_bias(Request& request, const OptionValue& value);         // "ID=VALUE" in each text
Status read_forbidden(Request& request, const OptionValue& value);          // "1,2" in each text

}  // namespace outrider
