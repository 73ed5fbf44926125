// SPDX-License-Identifier: Apache-2.0
// Attention on products of bf16 pairs over a cache of BF16 or Q8_0: queries of many rows and heads against
// the entries that they share, block by block as in simd/attention.h. Queries, probabilities and the numbers
// of Q8_0 are rounded to bf16; softmax and sums are f32. The products themselves are vectors'
// (pair_attention.h) or tiles' (amx).
//
// A query's bits depend on its own list only: a score is a sum over head_dim in a fixed order. Values are
// summed in steps of kStep places of the query's own list, counted from entry 0. A place that it does not see
// has probability 0, which adds a zero to its sums. The sign of a zero sum is dropped at the end. Where a
// value of such a place is not finite, the row gets a separate packed block, with zeros in these places.
#pragma once

#include "kernels/avx512_bf16/attention_blocks.h"

namespace outrider::bf16_attention {
namespace {

constexpr int64_t kRunNumbers = 65536;  // sums of the queries that share packed blocks: 256 KiB
constexpr int64_t kMaxQueries = 512;
constexpr int kGroup = 16;  // queries per group at most: one lane of a vector for each

bool fits(const AttentionArgs& args) {
  const bool has_pairs = args.kv_type == DType::kBF16 || args.kv_type == DType::kQ8_0;
  return args.slopes == nullptr && has_pairs && args.head_dim % kStep == 0 && args.head_dim <= kMaxHeadDim;
}

// Scores and weights of one block and a group of queries.
struct QueryGroup {
  alignas(64) float scores[kGroup][kBlock] = {};
  alignas(64) Bf16 weights[kGroup][kBlock];
  uint64_t visible[kGroup];  // bit i: the query sees place i of the block
};

// 2^x within 3e-6 of its value for x <= 127; 0 below -126, where numbers are subnormal and every operation on
// them takes the processor a hundred cycles; NaN for NaN.
__m512 exp2(__m512 x) {
  const __m512 r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);  // x - floor(x)
  __m512 series = _mm512_set1_ps(0.013534167911712688F);
  for (const float coefficient :
       {0.0520114606190201F, 0.24144275688621092F, 0.6930038344710604F, 1.0000025933690804F}) {
    series = _mm512_fmadd_ps(series, r, _mm512_set1_ps(coefficient));
  }
  const __mmask16 normal = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-126), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(normal, series, x);  // times 2^floor(x)
}

uint64_t bits_of(Range places) {
  return (~uint64_t{0} << places.begin) & (~uint64_t{0} >> (kBlock - places.end));
}

__mmask16 lanes_in(uint64_t visible, int vector) { return static_cast<__mmask16>(visible >> (16 * vector)); }

// With kAll, here and below, every query of the group sees all places.
template <bool kAll>
float max_score(const QueryGroup& group, int query) {
  const __m512 lowest = _mm512_set1_ps(-__builtin_huge_valf());
  __m512 scores[4];
  for (int v = 0; v < 4; ++v) {
    scores[v] = _mm512_load_ps(group.scores[query] + 16 * v);
    if (!kAll) scores[v] = _mm512_mask_mov_ps(lowest, lanes_in(group.visible[query], v), scores[v]);
  }
  return Avx512::largest(
      _mm512_max_ps(_mm512_max_ps(scores[0], scores[1]), _mm512_max_ps(scores[2], scores[3])));
}

// Weights 2^(bits * score + shift) of one query, 0 where it does not see; returns their sum, lane by lane.
template <bool kAll>
__m512 weights_of(QueryGroup& group, int query, __m512 bits, __m512 shift) {
  __m512 weights[4];
  for (int v = 0; v < 4; ++v) {
    weights[v] = exp2(_mm512_fmadd_ps(_mm512_load_ps(group.scores[query] + 16 * v), bits, shift));
    if (!kAll) weights[v] = _mm512_maskz_mov_ps(lanes_in(group.visible[query], v), weights[v]);
  }
  _mm512_store_si512(group.weights[query], (__m512i)_mm512_cvtne2ps_pbh(weights[1], weights[0]));
  _mm512_store_si512(group.weights[query] + kStep, (__m512i)_mm512_cvtne2ps_pbh(weights[3], weights[2]));
  return _mm512_add_ps(_mm512_add_ps(weights[0], weights[1]), _mm512_add_ps(weights[2], weights[3]));
}

// Turns scores into weights and updates the running softmax; returns by how much older sums shrink.
template <bool kAll>
__m512 weigh(int queries, float scale, QueryGroup& group, float* largest, float (*totals)[kGroup]) {
  alignas(64) float of_block[kGroup] = {};
  for (int i = 0; i < queries; ++i) of_block[i] = max_score<kAll>(group, i);
  const __m512 old = _mm512_loadu_ps(largest);
  const __m512 now = _mm512_max_ps(old, _mm512_load_ps(of_block));
  const __mmask16 used = Avx512::first(queries);
  _mm512_mask_storeu_ps(largest, used, now);
  const __m512 bits = _mm512_set1_ps(scale * 1.44269504F);
  // Exactly 1 where the largest score stays: then sums need no pass over them.
  const __mmask16 grows = _mm512_cmp_ps_mask(old, now, _CMP_NEQ_UQ);
  const __m512 shrink =
      _mm512_mask_mov_ps(_mm512_set1_ps(1), grows, exp2(_mm512_mul_ps(_mm512_sub_ps(old, now), bits)));
  alignas(64) float shrinks[kGroup];
  alignas(64) float shifts[kGroup];
  _mm512_store_ps(shrinks, shrink);
  _mm512_store_ps(shifts, _mm512_sub_ps(_mm512_setzero_ps(), _mm512_mul_ps(now, bits)));
  for (int i = 0; i < queries; ++i) {
    const __m512 sum = weights_of<kAll>(group, i, bits, _mm512_set1_ps(shifts[i]));
    _mm512_store_ps(totals[i], _mm512_fmadd_ps(_mm512_load_ps(totals[i]), _mm512_set1_ps(shrinks[i]), sum));
  }
  return _mm512_mask_blend_ps(used, _mm512_set1_ps(1), shrink);
}

// sums *= shrink, skipped where every factor is 1.
void shrink_sums(__m512 shrink, int64_t head_dim, float* sums) {
  alignas(64) float shrinks[kGroup];
  _mm512_store_ps(shrinks, shrink);
  unsigned changed = _mm512_cmp_ps_mask(shrink, _mm512_set1_ps(1), _CMP_NEQ_UQ);
  for (; changed != 0; changed &= changed - 1) {
    const int i = __builtin_ctz(changed);
    const __m512 factor = _mm512_set1_ps(shrinks[i]);
    for (int64_t d = 0; d < head_dim; d += 16) {
      float* at = sums + i * head_dim + d;
      _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), factor));
    }
  }
}

// A run of queries of one key/value head: they go through the cache together. Queries are numbered by item:
// (key/value head, row, head of the group) triples. Products::kQueries (at most kGroup) queries form a group:
//   score(q [queries, head_dim], block, head_dim, queries, scores): queries times keys; only the block's
//   first
//     16 * tiles scores of each are computed
//   add_values(block, head_dim, weights, queries, sums [queries, head_dim]): adds weights times values
// Both may read, but not change, what follows the queries up to kQueries.
template <typename Products>
class QueriesOfHead {
 public:
  explicit QueriesOfHead(const AttentionShare& share)
      : share_(share), args_(*share.args), group_(args_.head_count / args_.kv_head_count) {}

  // A run has at most kMaxQueries items and at most kRunNumbers / head_dim.
  void attend(int64_t kv_head, Range items) {
    kv_head_ = kv_head;
    items_ = items;
    fetch_first_block();
    start();
    int64_t longest = 0;
    for (int64_t row = row_of(items_.begin); row <= row_of(items_.end - 1); ++row) {
      const int64_t end = list_of(row).end;
      longest = end > longest ? end : longest;
    }
    for (int64_t begin = 0; begin < longest; begin += kBlock) attend_block(begin);
    finish();
  }

 private:
  int64_t row_of(int64_t item) const { return item / group_ % share_.row_count; }
  // The items of a row that belong to the run.
  Range items_of(int64_t row) const {
    const int64_t first = (kv_head_ * share_.row_count + row) * group_;
    const int64_t begin = first > items_.begin ? first : items_.begin;
    return {begin, first + group_ < items_.end ? first + group_ : items_.end};
  }
  Range list_of(int64_t row) const { return simd::entries_of<Avx512>(args_, share_.rows[row]); }
  // Entries of the block that a row sees; there are none if begin >= end.
  Range entries_in(int64_t row, int64_t block) const {
    const Range list = list_of(row);
    return {list.begin > block ? list.begin : block, list.end < block + kBlock ? list.end : block + kBlock};
  }

  // Calls visit(number of the query in the run, row, offset of its head within a row).
  template <typename Visit>
  void for_each_query(Visit visit) const {
    int64_t query = 0;
    for (int64_t row = row_of(items_.begin); query < items_.end - items_.begin; ++row) {
      const Range items = items_of(row);
      const int64_t first = (kv_head_ * share_.row_count + row) * group_;
      for (int64_t item = items.begin; item < items.end; ++item, ++query) {
        visit(query, row, (kv_head_ * group_ + item - first) * args_.head_dim);
      }
    }
  }

  void start() {
    const int64_t head_dim = args_.head_dim;
    const int64_t first = row_of(items_.begin);
    for_each_query([&](int64_t query, int64_t row, int64_t head) {
      const float* from = args_.q + row * args_.q_stride + head;
      Bf16* to = q_ + query * head_dim;
      for (int64_t d = 0; d < head_dim; d += kStep) {
        _mm512_store_si512(
            to + d, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + d + 16), _mm512_loadu_ps(from + d)));
      }
      for (int64_t d = 0; d < head_dim; d += 16)
        _mm512_store_ps(sums_ + query * head_dim + d, _mm512_setzero_ps());
      const simd::RunningSoftmax state = simd::first_state<Avx512>(args_, head);
      _mm512_store_ps(totals_[query], _mm512_maskz_mov_ps(1, _mm512_set1_ps(state.total)));
      largest_[query] = args_.softcap > 0 ? state.largest : state.largest / args_.scale;
      row_of_query_[query] = static_cast<int32_t>(row - first);
    });
    // The last group may reach beyond the queries.
    const int64_t count = items_.end - items_.begin;
    for (int64_t i = count * head_dim; i < (count + kGroup) * head_dim; i += kStep)
      _mm512_store_si512(q_ + i, _mm512_setzero_si512());
    _mm512_storeu_ps(largest_ + count, _mm512_setzero_ps());
  }

  // Whether row `a` sees the same entries as row `b` in places [begin, end).
  bool see_the_same(const AttentionRow& a, const AttentionRow& b, int64_t begin, int64_t end) const {
    if (a.pages != b.pages) return false;
    const int64_t common = a.prefix_len < b.prefix_len ? a.prefix_len : b.prefix_len;
    const auto entry = [](const AttentionRow& row, int64_t place) __attribute__((always_inline)) {
      return place < row.prefix_len ? place : row.tail[place - row.prefix_len];
    };
    // The comparison starts at the end, where branches of a tree differ.
    for (int64_t place = end - 1; place >= begin && place >= common; --place) {
      if (entry(a, place) != entry(b, place)) return false;
    }
    return true;
  }

  // Later blocks are fetched while the one before them is packed.
  void fetch_first_block() const {
    const int64_t row = row_of(items_.end - 1);
    const int64_t block = list_of(row).begin / kBlock * kBlock;
    const Range seen = entries_in(row, block);
    fetch_block(args_, share_.rows[row], kv_head_, block, seen);
  }

  // Rows with entries of the block that are the beginning of another row's share that row's packed block.
  // Later rows of chunks, chains and trees see more.
  void attend_block(int64_t block) {
    const int64_t first = row_of(items_.begin);
    const int64_t last = row_of(items_.end - 1);
    for (int64_t row = first; row <= last; ++row) {
      const Range seen = entries_in(row, block);
      done_[row - first] = seen.begin >= seen.end;
      if (seen.begin < seen.end) visible_[row - first] = bits_of({seen.begin - block, seen.end - block});
    }
    for (int64_t leader = last; leader >= first; --leader) {
      if (!done_[leader - first]) attend_together(block, leader, first);
    }
  }

  // All rows [first, leader] that can use the packed block of `leader`.
  void attend_together(int64_t block, int64_t leader, int64_t first) {
    const AttentionRow& leading = share_.rows[leader];
    const int64_t end = entries_in(leader, block).end;
    pack_block(args_, leading, kv_head_, block, {block, end}, packed_, next_);
    fetched_ = 0;
    const bool shared = packed_.finite;
    Range together = {0, 0};  // neighbouring items wait for each other, so that they fill whole groups
    for (int64_t row = leader; row >= first; --row) {
      const Range seen = entries_in(row, block);
      if (done_[row - first] || seen.end > end || !see_the_same(share_.rows[row], leading, block, seen.end))
        continue;
      done_[row - first] = true;
      const Range items = items_of(row);
      if (!shared) {
        pack_block(args_, share_.rows[row], kv_head_, block, seen, packed_, next_);
        attend_items(items);
      } else if (items.end == together.begin) {
        together.begin = items.begin;
      } else {
        attend_items(together);
        together = items;
      }
    }
    attend_items(together);
  }

  void attend_items(Range items) {
    constexpr int kQueries = Products::kQueries;
    static_assert(kQueries <= kGroup);
    for (; items.begin < items.end; items.begin += kQueries) {
      const int64_t left = items.end - items.begin;
      attend_group(items.begin - items_.begin, static_cast<int>(left < kQueries ? left : kQueries));
    }
  }

  // Queries [first, first + queries) of the run.
  void attend_group(int64_t first, int queries) {
    const int64_t head_dim = args_.head_dim;
    uint64_t by_all = ~uint64_t{0};
    for (int i = 0; i < queries; ++i) by_all &= query_group_.visible[i] = visible_[row_of_query_[first + i]];
    fetch_next_values();
    Products::score(q_ + first * head_dim, packed_, head_dim, queries, query_group_.scores);
    const bool capped = args_.softcap > 0;
    for (int i = 0; capped && i < queries; ++i)
      simd::softcap<Avx512>(query_group_.scores[i], kBlock, args_.scale, args_.softcap);
    const float scale = capped ? 1 : args_.scale;
    const auto weigh_group = by_all == ~uint64_t{0} ? weigh<true> : weigh<false>;
    const __m512 shrink = weigh_group(queries, scale, query_group_, largest_ + first, totals_ + first);
    float* sums = sums_ + first * head_dim;
    shrink_sums(shrink, head_dim, sums);
    fetch_next_values();
    Products::add_values(packed_, head_dim, query_group_.weights, queries, sums);
  }

  // A half each time, while products are computed: the processor has few requests under way at a time.
  void fetch_next_values() {
    if (fetched_ == kBlock) return;
    fetch_heads(next_.values, fetched_, fetched_ + kBlock / 2,
                cached_head_bytes(args_.kv_type, args_.head_dim));
    fetched_ += kBlock / 2;
  }

  void finish() {
    for_each_query([&](int64_t query, int64_t row, int64_t head) {
      const __m512 inverse = _mm512_set1_ps(1 / Avx512::sum(_mm512_load_ps(totals_[query])));
      float* y = args_.y + row * args_.head_count * args_.head_dim + head;
      for (int64_t d = 0; d < args_.head_dim; d += 16) {
        const __m512 sums = _mm512_load_ps(sums_ + query * args_.head_dim + d);
        // Not fused: a sum of minus zero becomes zero.
        _mm512_storeu_ps(y + d, _mm512_add_ps(_mm512_mul_ps(sums, inverse), _mm512_setzero_ps()));
      }
    });
  }

  const AttentionShare& share_;
  const AttentionArgs& args_;
  const int64_t group_;
  int64_t kv_head_ = 0;
  Range items_;
  // These are indexed by query of the run and padded to whole groups.
  alignas(64) Bf16 q_[kRunNumbers + kGroup * kMaxHeadDim];      // [queries][head_dim]
  alignas(64) float sums_[kRunNumbers + kGroup * kMaxHeadDim];  // [queries][head_dim], weights times values
  alignas(64) float totals_[kMaxQueries + kGroup][kGroup];      // weights, lane by lane
  alignas(64) float largest_[kMaxQueries + kGroup];             // score so far, before it is scaled
  int32_t row_of_query_[kMaxQueries + kGroup];                  // counted from the run's first
  uint64_t visible_[kMaxQueries];  // by row of the run: places of the present block that it sees
  bool done_[kMaxQueries];         // rows of the run, in the present block
  PackedBlock packed_;
  BlockPlaces next_;  // of the row with the packed block
  int fetched_ = 0;   // values of it
  QueryGroup query_group_;
};

template <typename Products>
void attend_all(const AttentionShare& share) {
  const int64_t items_of_kv_head = share.row_count * (share.args->head_count / share.args->kv_head_count);
  int64_t together = kRunNumbers / share.args->head_dim;
  if (together > kMaxQueries) together = kMaxQueries;
  QueriesOfHead<Products> queries(share);
  for (int64_t begin = share.items.begin; begin < share.items.end;) {
    const int64_t kv_head = begin / items_of_kv_head;
    int64_t end = (kv_head + 1) * items_of_kv_head;
    if (end > share.items.end) end = share.items.end;
    if (end > begin + together) end = begin + together;
    queries.attend(kv_head, {begin, end});
    begin = end;
  }
}

}  // namespace
}  // namespace outrider::bf16_attention
