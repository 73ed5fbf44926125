// SPDX-License-Identifier: Apache-2.0
#include "engine/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counter_rng.h"
#include "platform/durable_file.h"

namespace outrider {
namespace {

// In the order in which they are timed: the first few show the form of the costs.
constexpr int kRowCounts[] = {1, 8, 4, 16, 2, 32, 12, 24, 64, 48, 128, 96};
constexpr size_t kFewestPoints = 2;
constexpr int64_t kContext = 1024;
constexpr int kVersion = 3;

// Tokens of context that passes are timed with: a power of two, so that most engines share one value.
int64_t timed_context(const EngineParts& parts) {
  const int64_t room = std::clamp(parts.options.context - usual_logits(parts), int64_t{0}, kContext);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(room)));
}

// The row counts that passes of this engine may have and that no point is about yet.
std::vector<int> missing_rows(const std::vector<PassCosts::Point>& points, const EngineParts& parts) {
  std::vector<int> missing;
  for (const int rows : kRowCounts) {
    if (rows <= usual_logits(parts) &&
        std::ranges::find(points, rows, &PassCosts::Point::rows) == points.end())
      missing.push_back(rows);
  }
  return missing;
}

// Runs passes of chosen shapes. Their entries are empty, which does not change what a pass costs.
class TimedPasses {
 public:
  explicit TimedPasses(EngineParts& parts) : parts_(parts) {
    const TokenId first[] = {0};
    sequence_ = parts.cache->open(first);
  }

  // Writes entries, because memory that was never written maps to one page of zeros, which is read too fast.
  void touch(int64_t entries) {
    const auto transaction = parts_.cache->stage(sequence_, static_cast<int>(entries));
    if (!transaction.ok()) return;
    for (int entry = 0; entry < transaction->count(); ++entry)
      parts_.cache->storage().clear(transaction->slot(entry), 1);
  }

  // A pass over `rows` rows. Unlike rows activate different experts.
  struct Shape {
    int rows = 1;
    int64_t context = 0;
    bool is_alike = false;
  };
  // Milliseconds of one pass; null if the cache has no room for it.
  std::optional<double> time(const Shape& shape) {
    const auto [rows, context, is_alike] = shape;
    auto transaction = parts_.cache->stage(sequence_, static_cast<int>(rows + context));
    if (!transaction.ok()) return std::nullopt;
    tokens_.clear();
    for (int row = 0; row < rows; ++row) tokens_.push_back(is_alike ? 0 : token_of(row));
    batch_.clear();
    append_chain(batch_, sequence_, *transaction, tokens_, LogitsWanted::kAll);
    for (int32_t& length : batch_.prefix_len) length += static_cast<int32_t>(context);
    const double start = now_ms();
    parts_.target->forward(batch_, *parts_.cache);
    return now_ms() - start;
  }
  // Experts that the last pass read.
  int64_t active_experts() const { return parts_.target->active_experts(); }

 private:
  TokenId token_of(int row) const {
    return static_cast<TokenId>(mix64(static_cast<uint64_t>(row)) % static_cast<uint64_t>(parts_.vocab_size));
  }

  EngineParts& parts_;
  KvSequence sequence_;
  ForwardBatch batch_;
  std::vector<TokenId> tokens_;
};

// Times passes for the points of a table, until the time for it is spent.
class PointTimer {
 public:
  PointTimer(EngineParts& parts, double limit_ms)
      : passes_(parts), context_(timed_context(parts)), end_ms_(now_ms() + limit_ms) {
    passes_.touch(context_ + max_logits(parts));
    passes_.time({});  // the first pass touches memory for the first time
  }

  bool has_time() const { return now_ms() < end_ms_; }

  // Null if the cache has no room for such a pass.
  std::optional<PassCosts::Point> time(int rows) {
    const std::optional<double> ms = min_time({.rows = rows});
    if (!ms) return std::nullopt;
    PassCosts::Point point{
        .rows = rows, .ms = *ms, .active_experts = static_cast<double>(passes_.active_experts())};
    if (point.active_experts > 0 && rows > 1) point.ms_per_expert = time_per_expert(point);
    if (const auto with = context_ > 0 ? min_time({.rows = rows, .context = context_}) : std::nullopt) {
      point.ms_per_thousand = std::max(0.0, *with - *ms) * 1000.0 / static_cast<double>(context_);
    }
    return point;
  }

 private:
  // The minimum of a few passes, because disturbances only make a pass longer.
  std::optional<double> min_time(const TimedPasses::Shape& shape) {
    constexpr int kMaxRounds = 5;
    constexpr double kEnoughMs = 60.0;
    double spent = 0.0;
    std::optional<double> min;
    for (int round = 0; round < kMaxRounds && (round < 2 || spent < kEnoughMs); ++round) {
      if (round > 0 && !has_time()) break;
      const std::optional<double> ms = passes_.time(shape);
      if (!ms) return std::nullopt;
      min = min ? std::min(*min, *ms) : *ms;
      spent += *ms;
    }
    return min;
  }

  // The time that each expert of a point takes: alike rows activate fewer of them in otherwise equal passes.
  double time_per_expert(const PassCosts::Point& point) {
    const auto alike_ms = min_time({.rows = point.rows, .is_alike = true});
    const double more = point.active_experts - static_cast<double>(passes_.active_experts());
    return alike_ms && more > 0.0 ? std::max(0.0, point.ms - *alike_ms) / more : 0.0;
  }

  TimedPasses passes_;
  int64_t context_;
  double end_ms_;
};

// Each point takes two passes with context and two without, after one that brings the memory in.
bool has_time_for_a_point(const std::vector<PassCosts::Point>& points, double limit_ms) {
  constexpr double kPasses = 5.0;
  return points.size() < kFewestPoints || kPasses * points.front().ms < limit_ms;
}

// Adds points for row counts that have none, as many as there is time for and at least kFewestPoints in all.
void measure(EngineParts& parts, const std::vector<int>& missing, double limit_ms,
             std::vector<PassCosts::Point>& points) {
  PointTimer timer(parts, limit_ms);
  for (const int rows : missing) {
    if (points.size() >= kFewestPoints && !timer.has_time()) break;
    const std::optional<PassCosts::Point> point = timer.time(rows);
    if (!point) break;
    points.push_back(*point);
  }
  std::ranges::sort(points, {}, &PassCosts::Point::rows);
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line;
  }
  return {};
}

// A hash of everything that the times depend on, except the other load of the machine.
std::string fingerprint(const EngineParts& parts) {
  const EngineInfo& info = parts.info;
  const ModelConfig& config = parts.target->config();
  const std::string text = fmt::format(
      "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", kVersion, processor_name(),
      info.device + info.kernels, info.weights, info.kv_cache_type, info.threads, info.weight_bytes,
      config.layer_count, config.hidden_size, config.ffn_size,
      config.head_count * 1000 + config.kv_head_count, config.vocab_size, timed_context(parts),
      parts.options.tensor_parallel, parts.options.pipeline_parallel, info.host_layers, info.host_experts);
  uint64_t hash = 0;
  for (const char c : text) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return fmt::format("{:016x}", hash);
}

// Reads lines of "rows ms ms_per_thousand active_experts ms_per_expert"; empty if the file is absent or not
// of that form.
std::vector<PassCosts::Point> read_points(const std::filesystem::path& path) {
  constexpr double kMaxMs = 1e7;
  constexpr double kMaxExpertsOfPass = 1e7;
  std::ifstream file(path);
  std::vector<PassCosts::Point> points;
  for (std::string line; std::getline(file, line);) {
    PassCosts::Point point;
    std::istringstream fields(line);
    const bool is_whole = !file.eof() &&
                          fields >> point.rows >> point.ms >> point.ms_per_thousand >> point.active_experts >>
                              point.ms_per_expert &&
                          (fields >> std::ws).eof() && points.size() < std::size(kRowCounts);
    const bool rises = points.empty() ? point.rows == 1 : point.rows > points.back().rows;
    const bool is_sane = point.ms > 0.0 && point.ms < kMaxMs && point.ms_per_thousand >= 0.0 &&
                         point.ms_per_thousand < kMaxMs && point.active_experts >= 0.0 &&
                         point.active_experts < kMaxExpertsOfPass && point.ms_per_expert >= 0.0 &&
                         point.ms_per_expert * point.active_experts <= point.ms;
    if (!is_whole || !rises || !is_sane) return {};
    points.push_back(point);
  }
  return points;
}

void write_points(const std::filesystem::path& path, const std::vector<PassCosts::Point>& points) {
  std::string text;
  for (const auto& point : points)
    text += fmt::format("{} {:.6g} {:.6g} {:.6g} {:.6g}\n", point.rows, point.ms, point.ms_per_thousand,
                        point.active_experts, point.ms_per_expert);
  if (make_directories(path.parent_path()).ok()) (void)write_durably(path, text);
}

}  // namespace

PassCosts calibrate(EngineParts& parts, double limit_ms) {
  const std::filesystem::path directory = parts.options.cache_dir;
  const std::filesystem::path path = directory / ("pass-costs-" + fingerprint(parts) + ".txt");
  std::vector<PassCosts::Point> points;
  if (!directory.empty()) points = read_points(path);
  const std::vector<int> missing = missing_rows(points, parts);
  if (!missing.empty() && has_time_for_a_point(points, limit_ms)) {
    measure(parts, missing, limit_ms, points);
    if (!directory.empty() && !points.empty()) write_points(path, points);
  }
  return points.empty() ? PassCosts() : PassCosts(std::move(points));
}

}  // namespace outrider
