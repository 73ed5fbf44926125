// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/device_chooser.h"

#include <algorithm>
#include <limits>

#include "base/counter_rng.h"
#include "base/portable_math.h"
#include "sampling/logits_processor.h"

namespace outrider {
namespace {

simt::ChoiceMode mode_of(const ChoiceRow& row) {
  const SamplingParams& sampling = *row.sampling;
  if (sampling.temperature == 0.0) return simt::kGreedy;
  if (row.lists_likeliest) return simt::kLikeliestOfKept;
  return sampling.is_truncated() ? simt::kRaceOfKept : simt::kRace;
}

// Weights below e^-depth are not kept; the margin is for what the kernels round in f32.
float depth_of(double min_p) {
  constexpr double kSmallest = 708.5;  // no smaller weight is kept without min-p
  const double depth = min_p > 0.0 ? std::min(-portable_log(min_p), kSmallest) : kSmallest;
  return static_cast<float>(depth * 1.001 + 0.01);
}

float per_temperature(double temperature) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::min(1.0 / temperature, kLargest));
}

}  // namespace

DeviceChooser::DeviceChooser(Device& device, const Shape& shape, std::span<const TokenId> unused)
    : shape_(shape),
      parts_((shape.vocab_size + simt::kPartTokens - 1) / simt::kPartTokens),
      unused_(device, std::ssize(unused)),
      modes_(device, 2 * shape.rows),
      limits_(device, 2 * shape.rows),
      steepness_(device, 2 * shape.rows),
      keys_(device, shape.rows),
      largest_(device, shape.rows * parts_),
      largest_tokens_(device, shape.rows * parts_),
      kept_(device, shape.rows),
      kept_tokens_(device, shape.rows * shape.vocab_size),
      kept_weights_(device, shape.rows * shape.vocab_size),
      totals_(device, shape.rows),
      times_(device, shape.rows * parts_),
      firsts_(device, shape.rows * parts_),
      arrivals_(device, shape.rows),
      chosen_(device, shape.rows) {
  unused_.write(unused);
  arrivals_.write(std::vector<int>(static_cast<size_t>(shape.rows)));
  set_rows({});
}

bool DeviceChooser::can_choose(const SamplingParams& sampling) {
  return leaves_logits_alone(sampling) && sampling.top_n_sigma <= 0.0 && sampling.typical_p >= 1.0 &&
         sampling.top_p >= 1.0 && sampling.xtc_probability <= 0.0;
}

void DeviceChooser::set_rows(std::span<const ChoiceRow> rows) {
  const auto count = static_cast<size_t>(shape_.rows);
  std::vector<int> modes(2 * count, simt::kNoChoice);
  std::vector<double> limits(2 * count);
  std::vector<float> steepness(2 * count);
  std::vector<uint64_t> keys(count);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].sampling == nullptr) continue;
    const SamplingParams& sampling = *rows[i].sampling;
    modes[2 * i] = mode_of(rows[i]);
    modes[2 * i + 1] = sampling.top_k;
    limits[2 * i] = sampling.temperature;
    limits[2 * i + 1] = sampling.min_p;
    steepness[2 * i] = sampling.temperature > 0.0 ? per_temperature(sampling.temperature) : 0.0F;
    steepness[2 * i + 1] = depth_of(sampling.min_p);
    keys[i] = mix64(mix64(sampling.seed) ^ rows[i].sample);
  }
  modes_.write(modes);
  limits_.write(limits);
  steepness_.write(steepness);
  keys_.write(keys);
}

simt::ChoiceArgs DeviceChooser::args(const Logits& logits) const {
  return {.logits = rows_at<const float>(logits.numbers.address(), logits.rows * shape_.row_size),
          .of = {.modes = modes_.list(),
                 .limits = limits_.list(),
                 .steepness = steepness_.list(),
                 .keys = keys_.list(),
                 .places = logits.places},
          .largest = largest_.rows(),
          .largest_tokens = largest_tokens_.rows(),
          .kept = kept_.rows(),
          .kept_tokens = kept_tokens_.rows(),
          .kept_weights = kept_weights_.rows(),
          .totals = totals_.rows(),
          .times = times_.rows(),
          .firsts = firsts_.rows(),
          .arrivals = arrivals_.rows(),
          .chosen = chosen_.rows(),
          .rows = static_cast<int>(logits.rows),
          .vocab = static_cast<int>(shape_.vocab_size),
          .stride = static_cast<int>(shape_.row_size),
          .parts = static_cast<int>(parts_),
          .period = static_cast<int>(logits.period)};
}

simt::ChoiceArgs DeviceChooser::prepare(Launcher& launcher, const Logits& logits) {
  const simt::ChoiceArgs args = this->args(logits);
  const int64_t unused_parts = (unused_.count() + simt::kWarp - 1) / simt::kWarp;
  launcher.launch_items(
      KernelName::kLeaveOut,
      simt::LeaveOutArgs{.logits = rows_at<float>(logits.numbers.address(), logits.rows * shape_.row_size),
                         .tokens = unused_.list(),
                         .rows = args.rows,
                         .stride = args.stride},
      logits.rows * unused_parts);
  const int warps = std::min(args.parts, simt::KeptMemory::kMostWarps);
  launcher.launch(KernelName::kFindLargest, args,
                  {.blocks = args.rows * ((args.parts + warps - 1) / warps),
                   .warps = warps,
                   .shared_bytes = simt::KeptMemory::kBytes});
  return args;
}

void DeviceChooser::choose(Launcher& launcher, const Logits& logits) {
  const simt::ChoiceArgs args = prepare(launcher, logits);
  launcher.launch_items(KernelName::kRaceTokens, args, logits.rows * parts_);
}

}  // namespace outrider
