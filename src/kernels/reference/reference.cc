// SPDX-License-Identifier: Apache-2.0
// The oracle of all other tables: every sum in double precision and in the order of its inputs, in plain C++.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/isa_ops.h"
#include "kernels/quants.h"

namespace outrider {
namespace {

constexpr int64_t kChunk = 256;    // inputs decoded at a time; a multiple of every block size
constexpr int64_t kFeatures = 64;  // features that share one transposition of inputs

// Inputs [begin, begin + count) of one feature's weights.
void decode(const LinearShare& share, int64_t feature, int64_t begin, int64_t count, float* weights) {
  const std::byte* row = share.weights + feature * share.panel_bytes;
  if (share.dtype != DType::kI8) {
    return dequantize_row(share.dtype, row + row_bytes(share.dtype, begin), weights, count);
  }
  float scale;
  std::memcpy(&scale, row, sizeof(scale));
  const auto* codes = reinterpret_cast<const int8_t*>(row + sizeof(scale)) + begin;
  for (int64_t i = 0; i < count; ++i) weights[i] = scale * static_cast<float>(codes[i]);
}

constexpr int kTogether = 8;  // rows that are summed side by side
using Inputs = double[kChunk][kTogether];

// Inputs [begin, begin + count) of `rows` rows from `first` on, number by number, with zeros after the last
// row.
void lay_side_by_side(const LinearShare& share, int64_t first, int64_t rows, int64_t begin, int64_t count,
                      Inputs& inputs) {
  for (int64_t r = 0; r < kTogether; ++r) {
    for (int64_t i = 0; i < count; ++i)
      inputs[i][r] = r < rows ? static_cast<double>(share.x[(first + r) * share.k + begin + i]) : 0.0;
  }
}

// Each row's sum runs in the order of its inputs; several rows side by side hide the latency of additions.
void add_products(const float* weights, int64_t count, const Inputs& inputs, double* sums) {
  double totals[kTogether];
  for (int r = 0; r < kTogether; ++r) totals[r] = sums[r];
  for (int64_t i = 0; i < count; ++i) {
    const double weight = weights[i];
    for (int r = 0; r < kTogether; ++r) totals[r] += inputs[i][r] * weight;
  }
  for (int r = 0; r < kTogether; ++r) sums[r] = totals[r];
}

// Outputs `features` of `rows` rows from `first` on.
void multiply(const LinearShare& share, int64_t first, int64_t rows, Range features) {
  Inputs inputs;
  float weights[kChunk];
  double sums[kFeatures][kTogether] = {};
  for (int64_t begin = 0; begin < share.k; begin += kChunk) {
    const int64_t count = share.k - begin < kChunk ? share.k - begin : kChunk;
    lay_side_by_side(share, first, rows, begin, count, inputs);
    for (int64_t j = features.begin; j < features.end; ++j) {
      decode(share, j, begin, count, weights);
      add_products(weights, count, inputs, sums[j - features.begin]);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = features.begin; j < features.end; ++j)
      share.y[(first + r) * share.n + j] = static_cast<float>(sums[j - features.begin][r]);
  }
}

void linear(const LinearShare& share) {
  for (int64_t first = 0; first < share.rows; first += kTogether) {
    const int64_t rows = share.rows - first < kTogether ? share.rows - first : kTogether;
    for (int64_t j = share.features.begin; j < share.features.end; j += kFeatures) {
      const int64_t end = share.features.end - j < kFeatures ? share.features.end : j + kFeatures;
      multiply(share, first, rows, {j, end});
    }
  }
}

// Inputs are read unpacked.
void pack_inputs(const InputShare&) {}

int64_t slot_of(const AttentionArgs& args, const AttentionRow& row, int64_t position) {
  const int64_t entry = position < row.prefix_len ? position : row.tail[position - row.prefix_len];
  return row.pages[entry / args.page_size] * args.page_size + entry % args.page_size;
}

struct HeadOfRow {
  const AttentionArgs& args;
  const AttentionRow& row;
  int64_t kv_head;
  const float* q;  // [head_dim]
  double slope;
  double sink;  // -infinity: there is none
};

constexpr int64_t kUnit = 32;  // cached heads are padded to whole units, see cached_head_bytes

// Numbers [0, head_dim) of one cached head, in f32.
class CachedHead {
 public:
  CachedHead(const HeadOfRow& head, const std::byte* cache, int64_t position) : type_(head.args.kv_type) {
    const int64_t slot = slot_of(head.args, head.row, position);
    bytes_ = cache +
             (slot * head.args.kv_head_count + head.kv_head) * cached_head_bytes(type_, head.args.head_dim);
  }
  float operator[](int64_t d) {
    if (d / kUnit != unit_) {
      unit_ = d / kUnit;
      dequantize_row(type_, bytes_ + unit_ * cached_head_bytes(type_, kUnit), numbers_, kUnit);
    }
    return numbers_[d % kUnit];
  }

 private:
  DType type_;
  const std::byte* bytes_;
  int64_t unit_ = -1;
  float numbers_[kUnit];
};

double score(const HeadOfRow& head, int64_t position) {
  CachedHead key(head, head.args.k, position);
  double dot = 0;
  for (int64_t d = 0; d < head.args.head_dim; ++d) dot += static_cast<double>(head.q[d]) * key[d];
  const double distance = static_cast<double>(head.row.prefix_len + head.row.tail_len - 1 - position);
  const double cap = head.args.softcap;
  const double scaled = dot * head.args.scale;
  return (cap > 0 ? cap * std::tanh(scaled / cap) : scaled) - head.slope * distance;
}

void attend(const HeadOfRow& head, float* y) {
  const int64_t end = head.row.prefix_len + head.row.tail_len;
  const int64_t window = head.args.window;
  const int64_t chunk = head.args.chunk > 0 ? (end - 1) / head.args.chunk * head.args.chunk : 0;
  const int64_t begin = std::max(chunk, window > 0 && end > window ? end - window : 0);
  double largest = head.sink;
  for (int64_t e = begin; e < end; ++e) largest = std::fmax(largest, score(head, e));
  double total = std::exp(head.sink - largest);
  for (int64_t d = 0; d < head.args.head_dim; ++d) y[d] = 0;
  for (int64_t e = begin; e < end; ++e) {
    const double weight = std::exp(score(head, e) - largest);
    CachedHead value(head, head.args.v, e);
    total += weight;
    for (int64_t d = 0; d < head.args.head_dim; ++d) y[d] += static_cast<float>(weight * value[d]);
  }
  for (int64_t d = 0; d < head.args.head_dim; ++d) y[d] = static_cast<float>(y[d] / total);
}

void attention(const AttentionShare& share) {
  const AttentionArgs& args = *share.args;
  const int64_t group = args.head_count / args.kv_head_count;
  for (int64_t item = share.items.begin; item < share.items.end; ++item) {
    const int64_t kv_head = item / (share.row_count * group);
    const int64_t row = item / group % share.row_count;
    const int64_t head = (kv_head * group + item % group) * args.head_dim;
    const double slope = args.slopes == nullptr ? 0 : args.slopes[head / args.head_dim];
    const double sink = args.sinks == nullptr ? -HUGE_VAL : args.sinks[head / args.head_dim];
    attend({args, share.rows[row], kv_head, args.q + row * args.q_stride + head, slope, sink},
           args.y + row * args.head_count * args.head_dim + head);
  }
}

void rms_norm(const NormArgs& args, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = args.x + r * args.dim;
    double sum = 0;
    for (int64_t i = 0; i < args.dim; ++i) sum += static_cast<double>(x[i]) * x[i];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(args.dim) + args.epsilon);
    for (int64_t i = 0; i < args.dim; ++i)
      args.y[r * args.dim + i] = static_cast<float>(x[i] * scale * args.weight[i]);
  }
}

void layer_norm(const NormArgs& args, Range rows) {
  const auto dim = static_cast<double>(args.dim);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = args.x + r * args.dim;
    double sum = 0;
    for (int64_t i = 0; i < args.dim; ++i) sum += x[i];
    const double mean = sum / dim;
    double squares = 0;
    for (int64_t i = 0; i < args.dim; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / std::sqrt(squares / dim + args.epsilon);
    for (int64_t i = 0; i < args.dim; ++i) {
      const double bias = args.bias == nullptr ? 0 : args.bias[i];
      args.y[r * args.dim + i] = static_cast<float>((x[i] - mean) * scale * args.weight[i] + bias);
    }
  }
}

void rope(const RopeArgs& args, Range rows) {
  const int64_t half = args.rotated / 2;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* cosines = args.rotations + r * args.rotated;
    const float* sines = cosines + half;
    for (int64_t head = 0; head < args.heads; ++head) {
      float* x = args.x + (r * args.heads + head) * args.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const float a = x[i];
        const float b = x[half + i];
        x[i] = a * cosines[i] - b * sines[i];
        x[half + i] = b * cosines[i] + a * sines[i];
      }
    }
  }
}

void store_kv(const StoreKvArgs& args) {
  const int64_t bytes = cached_head_bytes(args.type, kUnit);
  std::byte* out = args.out;
  for (int64_t head = 0; head < args.heads; ++head) {
    const float* x = args.x + head * args.head_dim;
    for (int64_t begin = 0; begin < args.head_dim; begin += kUnit, out += bytes) {
      float unit[kUnit] = {};
      bool finite = true;
      for (int64_t d = 0; d < kUnit && begin + d < args.head_dim; ++d) {
        unit[d] = x[begin + d];
        finite = finite && std::isfinite(unit[d]);
      }
      quantize_row(args.type, unit, out, kUnit);
      if (finite || args.type != DType::kQ8_0) continue;
      const uint16_t scale = f32_to_f16(NAN);
      std::memcpy(out, &scale, sizeof(scale));
    }
  }
}

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x * std::numbers::sqrt2 / 2);
    case Activation::kGeluTanh:
      return x / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kClampedSwiglu: {
      const double gate = x > kSwigluLimit ? kSwigluLimit : x;
      return gate / (1 + std::exp(-kSwigluAlpha * gate));
    }
  }
  return 0;
}

// The factor of an activation that is gated.
double factor_of(Activation activation, double up) {
  if (activation != Activation::kClampedSwiglu) return up;
  return 1 + (up > kSwigluLimit ? kSwigluLimit : up < -kSwigluLimit ? -kSwigluLimit : up);
}

void activate(const ActivationArgs& args, Range items) {
  const int64_t width = args.is_gated ? 2 * args.dim : args.dim;
  for (int64_t item = items.begin; item < items.end; ++item) {
    const float* x = args.x + item / args.dim * width + item % args.dim;
    const double y = activated(args.activation, x[0]);
    args.y[item] = static_cast<float>(args.is_gated ? y * factor_of(args.activation, x[args.dim]) : y);
  }
}

void softcap(const SoftcapArgs& args, Range items) {
  for (int64_t i = items.begin; i < items.end; ++i) {
    const double wide = args.cap;
    args.x[i] = static_cast<float>(wide * std::tanh(args.x[i] / wide));
  }
}

void delta_step(const DeltaArgs& args) {
  for (int64_t j = 0; j < args.value_dim; ++j) {
    double known = 0;
    for (int64_t i = 0; i < args.key_dim; ++i) known += args.state[args.place(i, j)] * double{args.k[i]};
    const double change = args.rate * (args.v[j] - args.decay * known);
    double sum = 0;
    for (int64_t i = 0; i < args.key_dim; ++i) {
      const int64_t at = args.place(i, j);
      args.new_state[at] = static_cast<float>(double{args.decay} * args.state[at] + args.k[i] * change);
      sum += args.new_state[at] * double{args.q[i]};
    }
    if (args.y != nullptr) args.y[j] = static_cast<float>(sum);
  }
}

void delta_steps(const DeltaArgs* steps, int64_t count) {
  for (int64_t i = 0; i < count; ++i) delta_step(steps[i]);
}

int64_t multiply_add(InputLayout, int64_t rounds) {
  double sum = 0, x = 0.5;
  for (int64_t round = 0; round < rounds; ++round) {
    sum += x * x;
    asm volatile("" : "+m"(x), "+m"(sum));
  }
  return 2 * rounds;
}

}  // namespace

IsaOps reference_ops() {
  return {.pack_inputs = {pack_inputs},
          .linear = {linear},
          .attention = {attention},
          .rms_norm = {rms_norm},
          .layer_norm = {layer_norm},
          .rope = {rope},
          .store_kv = store_kv,
          .activate = {activate},
          .softcap = {softcap},
          .delta_steps = delta_steps,
          .multiply_add = multiply_add};
}

}  // namespace outrider
