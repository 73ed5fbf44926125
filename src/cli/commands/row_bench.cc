// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/counter_rng.h"
#include "cli/memory_reader.h"
#include "cli/product_peak.h"
#include "cli/reports/completion_json.h"
#include "cli/reports/row_bench_report.h"
#include "cli/terminal.h"
#include "open/parts.h"

namespace outrider {
namespace {

constexpr int64_t kDefaultContext = 512;
constexpr int64_t kRowBenchRounds = 10;

// A sequence with a random context in its cache. Passes that are timed leave the cache unchanged, except for
// chains where layers have states: the next one fills the cache again.
class RowPasses {
 public:
  explicit RowPasses(EngineParts& parts) : parts_(parts), sequence_(parts.cache->open({})) {}

  // Computes what the context lacks.
  Status fill(int64_t context);
  // Milliseconds from a batch of so many rows to its logits. Its operations are added to the profile;
  // nullptr: they are not timed.
  Result<double> time(RowCount count, PassProfile* profile);

 private:
  std::vector<TokenId> next_tokens(int64_t count);

  EngineParts& parts_;
  int64_t context_ = 0;
  KvSequence sequence_;
  ForwardBatch batch_;
  uint64_t drawn_ = 0;
};

std::vector<TokenId> RowPasses::next_tokens(int64_t count) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(mix64(drawn_++) % static_cast<uint64_t>(parts_.vocab_size));
  }
  return tokens;
}

Status RowPasses::fill(int64_t context) {
  context_ = context;
  ProgressBar progress("context", context);
  std::vector<int> path;
  while (sequence_.length() < context) {
    const int64_t chunk = std::min<int64_t>(context - sequence_.length(), parts_.options.prefill_chunk);
    const std::vector<TokenId> tokens = next_tokens(chunk);
    OUTRIDER_TRY(KvTransaction transaction, parts_.cache->stage(sequence_, static_cast<int>(chunk)));
    batch_.clear();
    append_chain(batch_, sequence_, transaction, tokens, LogitsWanted::kNone);
    parts_.target->forward(batch_, *parts_.cache);
    path.resize(tokens.size());
    std::iota(path.begin(), path.end(), 0);
    transaction.commit(path, tokens);
    for (int64_t i = 0; i < chunk; ++i) progress.advance();
  }
  return {};
}

Result<double> RowPasses::time(RowCount count, PassProfile* profile) {
  if (sequence_.length() < context_) OUTRIDER_RETURN_IF_ERROR(fill(context_));
  const std::vector<TokenId> tokens = next_tokens(count.rows);
  std::vector<int> parents(tokens.size());
  for (int node = 0; node < count.rows; ++node)
    parents[static_cast<size_t>(node)] = node == 0 ? -1 : (node - 1) / count.width;
  OUTRIDER_TRY(const KvTransaction transaction, parts_.cache->stage(sequence_, count.rows));
  parts_.target->measure_into(profile);
  const auto start = std::chrono::steady_clock::now();
  batch_.clear();
  if (count.rows <= RowCount::kMaxTreeRows) {
    append_tree(batch_, sequence_, transaction, {tokens, parents}, LogitsWanted::kAll);
  } else {
    append_chain(batch_, sequence_, transaction, tokens, LogitsWanted::kAll);
  }
  parts_.target->forward(batch_, *parts_.cache);
  const auto end = std::chrono::steady_clock::now();
  parts_.target->measure_into(nullptr);
  return std::chrono::duration<double, std::milli>(end - start).count();
}

// The number of context tokens: the requested one, or as much of the default as leaves room for `rows` rows.
Result<int64_t> context_beside(int rows, const Settings& settings, int64_t longest) {
  if (rows > longest) {
    return usage_error(
        fmt::format("--rows: a pass of {} rows needs a context of {} tokens, found {}; raise --ctx", rows,
                    rows, longest));
  }
  const int64_t context =
      settings.bench.cached_context.value_or(std::min<int64_t>(kDefaultContext, longest - rows));
  if (context + rows > longest) {
    return usage_error(fmt::format(
        "--context: {} tokens and {} rows exceed the context of {}; lower one of them or raise --ctx",
        context, rows, longest));
  }
  return context;
}

// Milliseconds in which what computes the passes reads as many weights plainly.
double read_ms(EngineParts& parts, MemoryReader& reader, const RowBench& bench) {
  const std::optional<double> on_device = parts.target->device_copy_ms(bench.streamed_bytes);
  return on_device ? *on_device : reader.time(*parts.pool);
}

// The order of the measurements rotates from round to round, so that the caches do not always favour the same
// one.
Status measure(RowPasses& passes, EngineParts& parts, int64_t rounds, RowBench& bench) {
  MemoryReader reader(bench.streamed_bytes);
  const auto counts = static_cast<int64_t>(bench.passes.size());
  ProgressBar progress("bench", (rounds + 1) * counts);
  for (int64_t round = 0; round <= rounds; ++round) {  // round 0 is the warm-up
    for (int64_t turn = 0; turn <= counts; ++turn) {
      const int64_t next = (round + turn) % (counts + 1);
      if (next == counts) {
        const double ms = read_ms(parts, reader, bench);
        if (round > 0) bench.read_ms.push_back(ms);
        continue;
      }
      RowMeasurement& pass = bench.passes[static_cast<size_t>(next)];
      PassProfile* profile = bench.has_profiles && round > 0 ? &pass.profile : nullptr;
      const std::optional<DeviceCounts> before = parts.target->device_counts();
      OUTRIDER_TRY(const double ms, passes.time({pass.rows, pass.width}, profile));
      if (before) pass.device = *parts.target->device_counts() - *before;
      if (round > 0) pass.ms.push_back(ms);
      if (round > 0) pass.bytes.push_back(static_cast<double>(parts.target->pass_bytes()));
      progress.advance();
    }
  }
  return {};
}

}  // namespace

Status run_bench_rows(const Settings& settings) {
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kPlain));
  names.options.speculation = {};
  names.options.max_batch = 1;
  OUTRIDER_TRY(const std::unique_ptr<EngineParts> parts, open_parts(std::move(names)));
  const int max = std::ranges::max_element(settings.bench.rows, {}, &RowCount::rows)->rows;
  RowBench bench;
  bench.info = parts->info;
  OUTRIDER_TRY(bench.context, context_beside(max, settings, parts->options.context));
  bench.streamed_bytes = parts->target->streamed_bytes();
  for (const RowCount& count : settings.bench.rows)
    bench.passes.push_back({.rows = count.rows, .width = count.width});
  bench.has_profiles = settings.bench.profiles;
  if (bench.has_profiles && bench.info.device == "cpu") {
    OUTRIDER_TRY(const KernelTable* kernels, select_kernels(parts->info.kernels));
    bench.peaks = measure_product_peaks(*kernels, *parts->pool);
  }
  RowPasses passes(*parts);
  OUTRIDER_RETURN_IF_ERROR(passes.fill(bench.context));
  OUTRIDER_RETURN_IF_ERROR(
      measure(passes, *parts, settings.bench.runs == 0 ? kRowBenchRounds : settings.bench.runs, bench));
  write_output(settings.json ? json_line(row_bench_json(bench)) : row_bench_text(bench));
  return {};
}

}  // namespace outrider
