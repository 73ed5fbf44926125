// SPDX-License-Identifier: Apache-2.0
// Attention with the running softmax of FlashAttention, in blocks of kBlock entries and chunks of kChunk
// entries, both counted from entry 0 of a row's own list. Blocks, and so all bits, depend on the row's length
// and window only: not on pages, not on where its prefix ends, not on which rows and heads are computed
// together to reuse the cache. Where scores have kSumChains chains, no bit depends on the size of a vector.
#pragma once

#include "kernels/simd/attention_chunks.h"
#include "kernels/simd/attention_entries.h"
#include "kernels/simd/cached_heads.h"
#include "kernels/simd/row_ops.h"

namespace outrider::simd {

inline constexpr int kTogether = 12;         // (row, head) pairs, or queries, that take a block together
inline constexpr int64_t kWidestHead = 256;  // numbers; heads up to here are widened to f32 once per block

// ALiBi within one block: entry i of the block has the bias slope * (first + i).
struct DistanceBias {
  float slope;  // 0: none
  float first;  // position of the block's first entry less the row's own
};

// One row's query of one head, which attends to the first `count` entries of a block.
struct BlockQuery {
  const float* q;
  float* y;
  int count;
  DistanceBias bias;
  RunningSoftmax* state;
};

// Queries that take a block together: the lists of all begin with the same entries of the block.
struct QueryBatch {
  BlockQuery queries[kTogether];
  int size;
};

// Divides `left` queries into as few groups of at most kMax as there can be, of about one size, and returns
// the size of the first.
template <typename V, int kMax>
int group_size(int left) {
  const int groups = (left + kMax - 1) / kMax;
  return (left + groups - 1) / groups;
}

// Calls use<count>(), with count from 1 to kMax.
template <typename V, int kMax, typename Use>
void with_count(int count, const Use& use) {
  if constexpr (kMax > 1) {
    if (count < kMax) return with_count<V, kMax - 1>(count, use);
  }
  use.template operator()<kMax>();
}

// Vectors that hold the chains of one score.
template <typename V>
inline constexpr int kScoreVectors = V::kScoreChains / V::kLanes;

// Entries that kCount queries are scored with at once, so many that V::sums() has its vectors.
template <typename V, int kCount>
inline constexpr int kScoredEntries = kCount == 3 ? 4 : V::kLanes / kCount;

// How many of these entries have sums that fill the registers.
template <typename V, int kCount>
inline constexpr int kSummedEntries = [] {
  int entries = 1;
  while (2 * entries <= kScoredEntries<V, kCount> && 2 * entries * kCount * kScoreVectors<V> <= V::kScoreSums)
    entries *= 2;
  return entries;
}();

// Sums of products of kCount queries and kSummedEntries entries, folded to vectors [query][kScoredEntries].
template <typename V, typename Cached, int kCount>
[[gnu::always_inline]] inline void sum_products(const BlockQuery* queries, const uint8_t* keys,
                                                const int64_t* offsets, int64_t head_dim,
                                                typename V::Floats* folded) {
  constexpr int kEntries = kSummedEntries<V, kCount>, kParts = kScoreVectors<V>;
  typename V::Floats sums[kCount * kEntries][kParts];
  // Not unrolled, the loops would clear memory.
#pragma GCC unroll 16
  for (auto& chains : sums) {
#pragma GCC unroll 4
    for (auto& chain : chains) chain = V::all(0);
  }
  const auto add_part = [&](int part, int64_t d, auto load) __attribute__((always_inline)) {
    typename V::Floats parts[kCount];
    for (int r = 0; r < kCount; ++r) parts[r] = V::in_register(load(queries[r].q + d));
    for (int i = 0; i < kEntries; ++i) {
      const auto key = Cached::load(keys + offsets[i], d);
      for (int r = 0; r < kCount; ++r)
        sums[r * kEntries + i][part] = V::multiply_add(parts[r], key, sums[r * kEntries + i][part]);
    }
  };
  int64_t d = 0;
  for (; d + V::kScoreChains <= head_dim; d += V::kScoreChains) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part)
      add_part(part, d + part * V::kLanes, [](const float* p) { return V::load(p); });
  }
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part, d += V::kLanes) {
    if (d < head_dim) add_part(part, d, [&](const float* p) { return load_left<V>(p, head_dim - d); });
  }
#pragma GCC unroll 16
  for (int i = 0; i < kCount * kEntries; ++i)
    folded[i / kEntries * kScoredEntries<V, kCount> + i % kEntries] = fold_chains<V, kParts>(sums[i]);
}

// Scores of kCount queries and kScoredEntries entries; scores of neighbouring queries are kBlock apart. Each
// sum is separate, in chains along head_dim, so that its bits do not depend on kCount.
template <typename V, typename Cached, int kCount>
[[gnu::always_inline]] inline void dot_entries(const BlockQuery* queries, const uint8_t* keys,
                                               const int64_t* offsets, int64_t head_dim, float* scores) {
  constexpr int kEntries = kScoredEntries<V, kCount>;
  typename V::Floats sums[kCount * kEntries];
#pragma GCC unroll 4
  for (int first = 0; first < kEntries; first += kSummedEntries<V, kCount>) {
    sum_products<V, Cached, kCount>(queries, keys, offsets + first, head_dim, sums + first);
    // Without this, g++ would keep the sums in registers, and the next ones in memory.
    if constexpr (kSummedEntries<V, kCount> < kEntries) asm("" : "+m"(sums));
  }
  constexpr int kVectors = (kCount * kEntries + V::kLanes - 1) / V::kLanes;
  alignas(64) float all[kVectors * V::kLanes];
  for (int v = 0; v < kVectors; ++v) {
    typename V::Floats some[V::kLanes];
    for (int i = 0; i < V::kLanes; ++i)
      some[i] = v * V::kLanes + i < kCount * kEntries ? sums[v * V::kLanes + i] : V::all(0);
    V::store(all + v * V::kLanes, V::sums(some));
  }
  for (int r = 0; r < kCount; ++r)
    __builtin_memcpy(scores + r * kBlock, all + r * kEntries, kEntries * sizeof(float));
}

// The score of one query and one entry, with the bits of dot_entries().
template <typename V, typename Cached>
float dot_entry(const float* q, const uint8_t* key, int64_t head_dim) {
  typename V::Floats chains[kScoreVectors<V>];
  for (auto& chain : chains) chain = V::all(0);
  for (int64_t d = 0; d < head_dim; d += V::kScoreChains) {
    for (int part = 0; part < kScoreVectors<V> && d + part * V::kLanes < head_dim; ++part) {
      const int64_t at = d + part * V::kLanes;
      chains[part] =
          V::multiply_add(load_left<V>(q + at, head_dim - at), Cached::load(key, at), chains[part]);
    }
  }
  return sum_chains<V>(chains);
}

// Not inlined, because the sums need all registers.
template <typename V, typename Cached, int kCount>
[[gnu::noinline]] void score_entries(const BlockQuery* queries, const uint8_t* keys,
                                     const BlockEntries& block, int64_t head_dim, float* scores,
                                     const ComingHeads<V>& coming) {
  constexpr int kEntries = kScoredEntries<V, kCount>;
  int i = 0;
  for (; i + kEntries <= block.count; i += kEntries) {
    dot_entries<V, Cached, kCount>(queries, keys, block.offsets + i, head_dim, scores + i);
    coming.fetch(i, i + kEntries);
  }
  coming.fetch(i, kBlock);
  for (; i < block.count; ++i) {
    for (int r = 0; r < kCount; ++r)
      scores[r * kBlock + i] = dot_entry<V, Cached>(queries[r].q, keys + block.offsets[i], head_dim);
  }
}

// The head begins at number `head` of a row; its first entry is that far before the end of the row's list.
template <typename V>
DistanceBias bias_of(const AttentionArgs& args, int64_t head, int64_t from_end) {
  if (args.slopes == nullptr) return {0, 0};
  return {args.slopes[head / args.head_dim], static_cast<float>(from_end + 1)};
}

// The softmax of no entry, and of the head's sink if there is one. The head begins at number `head` of a row.
template <typename V>
RunningSoftmax first_state(const AttentionArgs& args, int64_t head) {
  if (args.sinks == nullptr) return kNoEntries;
  return {args.sinks[head / args.head_dim], 1};
}

// Scales and caps scores and adds the bias. Returns the factor that is left to apply.
template <typename V>
float finish_scores(const AttentionArgs& args, float* scores, int count, DistanceBias bias) {
  float scale = args.scale;
  if (args.softcap > 0) {
    softcap<V>(scores, count, scale, args.softcap);
    scale = 1;
  }
  if (bias.slope == 0) return scale;
  for (int i = 0; i < count; ++i)
    scores[i] = scores[i] * scale + bias.slope * (bias.first + static_cast<float>(i));
  return 1;
}

// Scales scores in place, fills the last chains with the lowest one, and returns the largest.
template <typename V>
float scale_scores(float* scores, int count, float scale) {
  const int vectors = (count + kSumChains - 1) / kSumChains * kChainVectors<V>;
  for (int i = count; i < vectors * V::kLanes; ++i) scores[i] = -__builtin_huge_valf();
  auto block_largest = V::all(-__builtin_huge_valf());
  for (int i = 0; i < vectors; ++i) {
    const auto scaled = V::mul(V::load(scores + i * V::kLanes), V::all(scale));
    V::store(scores + i * V::kLanes, scaled);
    block_largest = V::max(block_largest, scaled);
  }
  return V::largest(block_largest);
}

// Turns scores into weights exp(score - largest) in place and returns their sum.
template <typename V>
float weigh_scores(float* scores, int count, float largest) {
  typename V::Floats chains[kChainVectors<V>];
  for (auto& chain : chains) chain = V::all(0);
  for (int i = 0; i < count; i += kSumChains) {
    for (int part = 0; part < kChainVectors<V>; ++part) {
      float* const at = scores + i + part * V::kLanes;
      const auto weight = exp_of_negative<V>(V::sub(V::load(at), V::all(largest)));
      V::store(at, weight);
      chains[part] = V::add(chains[part], weight);
    }
  }
  return sum_chains<V, kChainVectors<V>>(chains);
}

// Scores [query][kBlock] of a batch.
template <typename V, typename Cached>
void score_batch(const QueryBatch& batch, const uint8_t* keys, const BlockEntries& block, int64_t head_dim,
                 float* scores, const ComingHeads<V>& coming) {
  for (int first = 0; first < batch.size;) {
    const auto score = [&]<int kCount>() {
      score_entries<V, Cached, kCount>(batch.queries + first, keys, block, head_dim, scores + first * kBlock,
                                       first == 0 ? coming : ComingHeads<V>{});
      first += kCount;
    };
    with_count<V, V::kScoredQueries>(group_size<V, V::kScoredQueries>(batch.size - first), score);
  }
}

// Weights of a batch's queries, [query][kBlock], and the factors by which their older sums shrink, in whole
// vectors.
template <typename V>
struct BlockWeights {
  static constexpr int kFactors = (kTogether + V::kLanes - 1) / V::kLanes * V::kLanes;
  alignas(64) float of_entries[kTogether * kBlock];
  alignas(64) float shrink[kFactors];
};

// Turns scores into weights. Each step runs for all queries before the next one, because one query's steps
// wait for each other.
template <typename V>
void softmax_batch(const AttentionArgs& args, const QueryBatch& batch, BlockWeights<V>& weights) {
  constexpr int kFactors = BlockWeights<V>::kFactors;
  float largest[kTogether], change[kFactors];
  for (int r = 0; r < kFactors; ++r) change[r] = 0;
  for (int r = 0; r < batch.size; ++r) {
    const BlockQuery& query = batch.queries[r];
    float* scores = weights.of_entries + r * kBlock;
    const float scale = finish_scores<V>(args, scores, query.count, query.bias);
    const float candidate = scale_scores<V>(scores, query.count, scale);
    largest[r] = candidate > query.state->largest ? candidate : query.state->largest;
    change[r] = query.state->largest - largest[r];
  }
  for (int r = 0; r < batch.size; r += V::kLanes)
    V::store(weights.shrink + r, exp_of_negative<V>(V::load(change + r)));
  for (int r = 0; r < batch.size; ++r) {
    const BlockQuery& query = batch.queries[r];
    const float total = weigh_scores<V>(weights.of_entries + r * kBlock, query.count, largest[r]);
    *query.state = {largest[r], __builtin_fmaf(query.state->total, weights.shrink[r], total)};
  }
}

// Numbers [part.begin, part.end) of y = y * shrink + sum of weights[i] * values[i] over the entries i, for
// kCount queries from `first` on; the last vector may be a part of one.
template <typename V, typename Cached, int kCount, int kVectors>
void add_values(const BlockQuery* queries, const BlockWeights<V>& weights, int first, const uint8_t* values,
                const int64_t* offsets, Range entries, Range part, const ComingHeads<V>& coming) {
  typename V::Floats sums[kCount][kVectors];
  const int64_t left = part.end - part.begin - (kVectors - 1) * V::kLanes;
  const auto width = [left](int v) { return v + 1 < kVectors ? V::kLanes : left; };
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const auto old = V::load_first(queries[r].y + part.begin + v * V::kLanes, width(v));
      sums[r][v] = entries.begin == 0 ? V::mul(old, V::all(weights.shrink[first + r])) : old;
    }
  }
  const float* of_queries = weights.of_entries + first * kBlock;
  for (int64_t i = entries.begin; i < entries.end; ++i) {
    coming.fetch(static_cast<int>(i), static_cast<int>(i + 1));
    const auto weight = [&](int r) { return V::all(of_queries[r * kBlock + i]); };
    const auto value = [&](int v) { return Cached::load(values + offsets[i], part.begin + v * V::kLanes); };
    // The sums leave few registers, which hold the fewer of the two.
    if constexpr (kCount <= kVectors) {
      typename V::Floats weights_of[kCount];
      for (int r = 0; r < kCount; ++r) weights_of[r] = weight(r);
      for (int v = 0; v < kVectors; ++v) {
        const auto numbers = value(v);
        for (int r = 0; r < kCount; ++r) sums[r][v] = V::multiply_add(weights_of[r], numbers, sums[r][v]);
      }
    } else {
      typename V::Floats numbers[kVectors];
      for (int v = 0; v < kVectors; ++v) numbers[v] = value(v);
      for (int r = 0; r < kCount; ++r) {
        const auto weight_of = weight(r);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = V::multiply_add(weight_of, numbers[v], sums[r][v]);
      }
    }
  }
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kVectors; ++v)
      V::store_first(queries[r].y + part.begin + v * V::kLanes, sums[r][v], width(v));
  }
}

// Numbers from d on of the outputs of kCount queries, kVectors at once, and the rest in fewer.
template <typename V, typename Cached, int kCount, int kVectors = V::kValueVectors[kCount]>
void add_all_values(const BlockQuery* queries, const BlockWeights<V>& weights, int first,
                    const uint8_t* values, const int64_t* offsets, Range entries, int64_t d, int64_t head_dim,
                    const ComingHeads<V>& coming) {
  constexpr int64_t kWidth = kVectors * V::kLanes;
  for (; d + kWidth <= head_dim; d += kWidth) {
    add_values<V, Cached, kCount, kVectors>(queries, weights, first, values, offsets, entries,
                                            {d, d + kWidth}, d == 0 ? coming : ComingHeads<V>{});
  }
  if (d == head_dim) return;
  if constexpr (kVectors > 1) {
    add_all_values<V, Cached, kCount, (kVectors + 1) / 2>(queries, weights, first, values, offsets, entries,
                                                          d, head_dim, d == 0 ? coming : ComingHeads<V>{});
  } else {
    add_values<V, Cached, kCount, 1>(queries, weights, first, values, offsets, entries, {d, head_dim}, {});
  }
}

// kCount queries from `first` on add the entries that all of them see; then each adds its own.
template <typename V, typename Cached, int kCount>
void add_values_of(const BlockQuery* queries, const BlockWeights<V>& weights, int first,
                   const uint8_t* values, const int64_t* offsets, int64_t head_dim,
                   const ComingHeads<V>& coming) {
  int common = queries[0].count;
  for (int r = 1; r < kCount; ++r) common = queries[r].count < common ? queries[r].count : common;
  add_all_values<V, Cached, kCount>(queries, weights, first, values, offsets, {0, common}, 0, head_dim,
                                    coming);
  for (int r = 0; r < kCount; ++r) {
    const int count = queries[r].count;
    if (count > common)
      add_all_values<V, Cached, 1>(queries + r, weights, first + r, values, offsets, {common, count}, 0,
                                   head_dim, {});
  }
}

template <typename V, typename Cached>
void add_values_of_batch(const QueryBatch& batch, const BlockWeights<V>& weights, const uint8_t* values,
                         const int64_t* offsets, int64_t head_dim, const ComingHeads<V>& coming) {
  constexpr int kMax = static_cast<int>(sizeof(V::kValueVectors) / sizeof(int)) - 1;
  for (int first = 0; first < batch.size;) {
    const auto add = [&]<int kCount>() {
      add_values_of<V, Cached, kCount>(batch.queries + first, weights, first, values, offsets, head_dim,
                                       first == 0 ? coming : ComingHeads<V>{});
      first += kCount;
    };
    with_count<V, kMax>(group_size<V, kMax>(batch.size - first), add);
  }
}

// `block` has the entries of the query that sees most of them. Fetches one half of the heads that come next
// while it scores, and one while it adds values.
template <typename V, typename Cached>
void attend_block(const AttentionArgs& args, const BlockEntries& block, const uint8_t* keys,
                  const uint8_t* values, const QueryBatch& batch, const ComingHeads<V> (&coming)[2]) {
  BlockWeights<V> weights;
  score_batch<V, Cached>(batch, keys, block, args.head_dim, weights.of_entries, coming[0]);
  softmax_batch<V>(args, batch, weights);
  add_values_of_batch<V, Cached>(batch, weights, values, block.offsets, args.head_dim, coming[1]);
}

// A block's keys and values as f32, for all heads and rows that see the same entries.
struct WideBlock {
  alignas(64) float keys[kBlock * kWidestHead];
  alignas(64) float values[kBlock * kWidestHead];
  BlockEntries entries;  // within either
};

// Entries [from, block.count) of one half of the cache, padded to `padded` numbers each.
template <typename V, typename Cached>
void widen_heads(const BlockEntries& block, int from, const std::byte* cache, int64_t padded, float* out) {
  for (int i = from; i < block.count; ++i) {
    const uint8_t* head = reinterpret_cast<const uint8_t*>(cache) + block.offsets[i];
    for (int64_t d = 0; d < padded; d += V::kLanes) V::store(out + i * padded + d, Cached::load(head, d));
  }
}

// Items of one key/value head, at most kRun. They pass block by block over the cache, so that each finds the
// entries that the previous one read in the nearest caches. Many items read entries that are widened once.
template <typename V, typename Cached, bool kWiden>
class AttentionRun {
 public:
  AttentionRun(const AttentionShare& share, int64_t kv_head, Range items, WideBlock& wide)
      : share_(share),
        args_(*share.args),
        kv_head_(kv_head),
        group_(args_.head_count / args_.kv_head_count),
        items_(items),
        wide_(wide) {
    constexpr int64_t kPadding = CachedQ8<V>::kBlock;
    padded_ = (args_.head_dim + kPadding - 1) / kPadding * kPadding;
    for (int i = 0; kWiden && i < kBlock; ++i)
      wide_.entries.offsets[i] = i * padded_ * static_cast<int64_t>(sizeof(float));
  }

  void attend() {
    int64_t longest = 0;
    for (int64_t item = items_.begin; item < items_.end; ++item) {
      states_[item - items_.begin] = first_state<V>(args_, head_of(item));
      float* y = y_of(item);
      for (int64_t d = 0; d < args_.head_dim; ++d) y[d] = 0;
      const int64_t end = entries_of<V>(args_, share_.rows[row_of(item)]).end;
      longest = end > longest ? end : longest;
    }
    if (longest > kChunk) chunks_.start(items_.end - items_.begin, args_.head_dim);
    for (int64_t begin = 0; begin < longest; begin += kBlock) {
      attend_entries({begin, begin + kBlock});
      const int64_t end = begin + kBlock;
      if (longest > kChunk && (end % kChunk == 0 || end >= longest)) end_chunk();
    }
    for (int64_t item = items_.begin; item < items_.end; ++item) {
      const int64_t at = item - items_.begin;
      float* y = y_of(item);
      const float* sums = longest > kChunk ? chunks_.sums(at) : y;
      const float total = longest > kChunk ? chunks_.state(at).total : states_[at].total;
      for (int64_t d = 0; d < args_.head_dim; ++d) y[d] = sums[d] / total;
    }
  }

 private:
  int64_t row_of(int64_t item) const { return item / group_ % share_.row_count; }
  int64_t head_of(int64_t item) const { return (kv_head_ * group_ + item % group_) * args_.head_dim; }
  float* y_of(int64_t item) const {
    return args_.y + row_of(item) * args_.head_count * args_.head_dim + head_of(item);
  }

  void end_chunk() {
    for (int64_t item = items_.begin; item < items_.end; ++item)
      chunks_.add(item - items_.begin, states_[item - items_.begin], y_of(item));
  }

  // One block, row by row.
  void attend_entries(Range within) {
    block_.count = 0;
    for (int64_t item = items_.begin, end = 0; item < items_.end; item = end) {
      const int64_t place = item % group_;
      end = item + group_ - place;
      if (end > items_.end) end = items_.end;
      const int64_t r = row_of(item);
      const AttentionRow& row = share_.rows[r];
      const Range all = entries_of<V>(args_, row);
      const Range entries = {all.begin > within.begin ? all.begin : within.begin,
                             all.end < within.end ? all.end : within.end};
      if (entries.begin >= entries.end) continue;
      take_entries(row, entries, all.end);
      const auto count = static_cast<int>(entries.end - entries.begin);
      for (int64_t i = item; i < end; ++i) {
        const int64_t head = (kv_head_ * group_ + place + i - item) * args_.head_dim;
        add_query(r, head, {.count = count, .from_end = entries.begin - all.end}, states_[i - items_.begin]);
      }
    }
    flush();
  }

  // Makes the block begin with these entries of the row; its list ends at `end`.
  void take_entries(const AttentionRow& row, Range entries, int64_t end) {
    // Rows of a prompt have the same entries in order, so that only the longest list is looked up.
    const bool in_order = entries.end <= row.prefix_len;
    const bool is_known = entries.begin == begin_ && entries.end - entries.begin <= block_.count;
    if (in_order && is_known && row.pages == pages_) return;
    BlockEntries next;
    find_entries<V>(args_, row, kv_head_, entries, next);
    const size_t known = next.count < block_.count ? next.count : block_.count;
    const bool same = __builtin_memcmp(block_.offsets, next.offsets, known * sizeof(next.offsets[0])) == 0;
    if (!same) flush();
    if (same && next.count <= block_.count) return;
    const int widened = same ? block_.count : 0;
    block_ = next;
    begin_ = entries.begin;
    pages_ = in_order ? row.pages : nullptr;
    if constexpr (kWiden) {
      widen_heads<V, Cached>(block_, widened, args_.k, padded_, wide_.keys);
      widen_heads<V, Cached>(block_, widened, args_.v, padded_, wide_.values);
      wide_.entries.count = block_.count;
    }
    find_entries<V>(args_, row, kv_head_,
                    {entries.end, end < entries.end + kBlock ? end : entries.end + kBlock}, next_block_);
    is_fetched_ = false;
  }

  // The entries of the block that a query attends to are its first ones. The first of them is that far before
  // the end of the row's list.
  struct Attended {
    int count;
    int64_t from_end;
  };

  // The head begins at number `head` of a row.
  void add_query(int64_t row, int64_t head, Attended attended, RunningSoftmax& state) {
    batch_.queries[batch_.size++] = {.q = args_.q + row * args_.q_stride + head,
                                     .y = args_.y + row * args_.head_count * args_.head_dim + head,
                                     .count = attended.count,
                                     .bias = bias_of<V>(args_, head, attended.from_end),
                                     .state = &state};
    if (batch_.size == kTogether) flush();
  }

  void flush() {
    if (batch_.size == 0) return;
    const auto* keys = reinterpret_cast<const uint8_t*>(args_.k);
    const auto* values = reinterpret_cast<const uint8_t*>(args_.v);
    const int64_t bytes = cached_head_bytes(args_.kv_type, args_.head_dim);
    const BlockEntries* const next = is_fetched_ ? nullptr : &next_block_;
    if constexpr (kWiden) {
      attend_block<V, CachedF32<V>>(args_, wide_.entries, reinterpret_cast<const uint8_t*>(wide_.keys),
                                    reinterpret_cast<const uint8_t*>(wide_.values), batch_,
                                    {{keys, next, bytes}, {values, next, bytes}});
    } else {
      const BlockEntries* const now = is_fetched_ ? nullptr : &block_;
      attend_block<V, Cached>(args_, block_, keys, values, batch_,
                              {{values, now, bytes}, {keys, next, bytes}});
    }
    is_fetched_ = true;
    batch_.size = 0;
  }

  const AttentionShare& share_;
  const AttentionArgs& args_;
  int64_t kv_head_;
  int64_t group_;  // query heads of a key/value head
  Range items_;
  WideBlock& wide_;
  int64_t padded_;                  // numbers of a widened head
  BlockEntries block_;              // entries of the row that sees most of them
  int64_t begin_ = 0;               // the first one, counted from the beginning of the list
  const int32_t* pages_ = nullptr;  // of its sequence, where the entries are in order
  BlockEntries next_block_;         // entries that the same row sees after them
  bool is_fetched_ = true;          // what comes next was fetched
  QueryBatch batch_ = {.queries = {}, .size = 0};
  RunningSoftmax states_[kRun];  // of the present chunk
  ChunkSums<V> chunks_;
};

template <typename V, typename Cached, bool kWiden = true>
void attend_all(const AttentionShare& share) {
  WideBlock wide;
  const int64_t items_of_kv_head = share.row_count * (share.args->head_count / share.args->kv_head_count);
  int64_t together = kRunNumbers / share.args->head_dim;
  if (together > kRun) together = kRun;
  for (int64_t begin = share.items.begin; begin < share.items.end;) {
    const int64_t kv_head = begin / items_of_kv_head;
    int64_t end = (kv_head + 1) * items_of_kv_head;
    if (end > share.items.end) end = share.items.end;
    if (end > begin + together) end = begin + together;
    if (kWiden && end - begin > Cached::kDirectQueries) {
      AttentionRun<V, Cached, kWiden>(share, kv_head, {begin, end}, wide).attend();
    } else {
      AttentionRun<V, Cached, false>(share, kv_head, {begin, end}, wide).attend();
    }
    begin = end;
  }
}

template <typename V>
void attention(const AttentionShare& share) {
  const bool narrow = share.args->head_dim <= kWidestHead;
  switch (share.args->kv_type) {
    case DType::kBF16:
      if (!narrow) return attend_all<V, CachedBf16<V>, false>(share);
      return attend_all<V, CachedBf16<V>>(share);
    case DType::kF16:
      if (!narrow) return attend_all<V, CachedF16<V>, false>(share);
      return attend_all<V, CachedF16<V>>(share);
    case DType::kE4M3:
      if (!narrow) return attend_all<V, CachedE4m3<V>, false>(share);
      return attend_all<V, CachedE4m3<V>>(share);
    case DType::kQ8_0:
      if (!narrow) return attend_all<V, CachedQ8<V>, false>(share);
      return attend_all<V, CachedQ8<V>>(share);
    default:
      return attend_all<V, CachedF32<V>, false>(share);
  }
}

}  // namespace outrider::simd
