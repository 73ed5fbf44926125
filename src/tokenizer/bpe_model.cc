// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/bpe_model.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "base/quote.h"
#include "base/utf8.h"
#include "tokenizer/byte_mapping.h"

namespace outrider {

// Short words that were encoded before, and their tokens. Open addressing, linear probing; a power of two, at
// most half in use.
class WordCache {
 public:
  static constexpr size_t kMaxBytes = 15;               // of a word
  static constexpr size_t kMaxWords = size_t{1} << 16;  // all are forgotten when there are so many

  struct Entry {
    uint64_t low = 0, high = 0;  // the bytes of the word, zeros, and its length; 0: free
    uint32_t first = 0;          // the only token of the word, or the index of the first of several
    uint32_t count = 0;          // of its tokens; 0: not yet known
  };

  // The entry of a word of 1 to kMaxBytes bytes, made if it is new. Valid until the next call.
  Entry& find(std::string_view word) {
    if (2 * used_ >= entries_.size()) make_room();
    char bytes[kMaxBytes + 1] = {};
    std::memcpy(bytes, word.data(), word.size());
    bytes[kMaxBytes] = static_cast<char>(word.size());
    Entry key;
    std::memcpy(&key.low, bytes, sizeof(key.low));
    std::memcpy(&key.high, bytes + sizeof(key.low), sizeof(key.high));
    Entry& entry = place_of(key);
    if (entry.high == 0) {
      entry = key;
      ++used_;
    }
    return entry;
  }

  void append_tokens(const Entry& entry, std::vector<TokenId>& tokens) const {
    if (entry.count == 1) {
      tokens.push_back(static_cast<TokenId>(entry.first));
    } else {
      const auto first = several_.begin() + entry.first;
      tokens.insert(tokens.end(), first, first + entry.count);
    }
  }

  void set_tokens(Entry& entry, std::span<const TokenId> tokens) {
    entry.count = static_cast<uint32_t>(tokens.size());
    entry.first =
        static_cast<uint32_t>(tokens.size() == 1 ? static_cast<size_t>(tokens.front()) : several_.size());
    if (tokens.size() > 1) several_.insert(several_.end(), tokens.begin(), tokens.end());
  }

 private:
  Entry& place_of(const Entry& key) {
    uint64_t hash = (key.low * 0x9E3779B97F4A7C15ull ^ key.high) * 0xD6E8FEB86659FD93ull;
    hash ^= hash >> 32;
    const size_t mask = entries_.size() - 1;
    for (size_t i = static_cast<size_t>(hash) & mask;; i = (i + 1) & mask) {
      Entry& entry = entries_[i];
      if (entry.high == 0 || (entry.low == key.low && entry.high == key.high)) return entry;
    }
  }

  void make_room() {
    if (used_ >= kMaxWords) {
      std::ranges::fill(entries_, Entry());
      several_.clear();
      used_ = 0;
      return;
    }
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.high != 0) place_of(entry) = entry;
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(1024);
  size_t used_ = 0;
  std::vector<TokenId> several_;  // tokens of words that have several
};

namespace {

// The order of the heap. std::*_heap keep the greatest element first, so "greater" means "later".
bool is_later(const BpeCandidate& a, const BpeCandidate& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.position > b.position;
}

bool can_stand_in_text(TokenAttribute attribute) {
  return attribute == TokenAttribute::kNormal || attribute == TokenAttribute::kUserDefined;
}

}  // namespace

// Caches of texts before; each thread that encodes a long text takes one.
class BpeModel::WordCaches {
 public:
  std::unique_ptr<WordCache> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<WordCache>();
    std::unique_ptr<WordCache> cache = std::move(free_.back());
    free_.pop_back();
    return cache;
  }

  void give_back(std::unique_ptr<WordCache> cache) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(cache));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

BpeModel::~BpeModel() = default;

BpeModel::BpeModel(const TokenizerSpec& spec, size_t merges)
    : SubwordModel(spec.unknown),
      spec_(&spec),
      by_score_(!spec.scores.empty() && spec.merges.empty()),
      merges_(merges),
      caches_(std::make_unique<WordCaches>()) {}

Result<std::unique_ptr<const SubwordModel>> BpeModel::create(const TokenizerSpec& spec,
                                                             const PieceIds& piece_ids) {
  std::unique_ptr<BpeModel> model(new BpeModel(spec, spec.merges.size()));
  OUTRIDER_RETURN_IF_ERROR(model->index_merges(piece_ids));
  model->index_pieces();
  if (spec.kind == TokenizerKind::kByteLevelBpe) {
    for (const auto& [word, id] : model->word_ids_) {
      if (word.size() == 1) model->byte_ids_[static_cast<unsigned char>(word[0])] = id;
    }
  } else if (spec.byte_fallback) {
    model->find_byte_pieces(piece_ids);
  }
  return std::unique_ptr<const SubwordModel>(std::move(model));
}

void BpeModel::index_pieces() {
  const bool byte_level = spec_->kind == TokenizerKind::kByteLevelBpe;
  words_.resize(spec_->pieces.size());
  word_ids_.reserve(spec_->pieces.size());
  for (size_t id = 0; id < spec_->pieces.size(); ++id) {
    const TokenAttribute attribute = spec_->attributes[id];
    // A user-defined token is plain text, not the spelling of bytes: its "õ" is the letter, not the byte
    // mapped to it.
    if (!can_stand_in_text(attribute) || (byte_level && attribute == TokenAttribute::kUserDefined)) continue;
    if (byte_level) {
      auto bytes = unmap_bytes(spec_->pieces[id]);
      if (!bytes) continue;
      words_[id] = std::move(*bytes);
    } else {
      words_[id] = spec_->pieces[id];
    }
    word_ids_.emplace(words_[id], static_cast<TokenId>(id));
    longest_piece_ = std::max(longest_piece_, words_[id].size());
  }
}

Status BpeModel::index_merges(const PieceIds& piece_ids) {
  std::string joined;
  for (size_t rank = 0; rank < spec_->merges.size(); ++rank) {
    const auto& merge = spec_->merges[rank];
    joined = merge.first;
    joined += merge.second;
    const auto left = piece_ids.find(merge.first);
    const auto right = piece_ids.find(merge.second);
    const auto result = piece_ids.find(joined);
    if (left == piece_ids.end() || right == piece_ids.end() || result == piece_ids.end()) {
      return input_error("merge " + std::to_string(rank) + " (" + quote(merge.first) + " + " +
                         quote(merge.second) +
                         ") needs both parts and the joined piece to be in the vocabulary");
    }
    merges_.insert(left->second, right->second, {static_cast<int32_t>(rank), result->second});
  }
  return {};
}

void BpeModel::encode_words(const std::vector<std::string_view>& words, std::vector<TokenId>& tokens) const {
  constexpr size_t kFewWords = 256;
  BpeWorkspace workspace;
  if (words.size() < kFewWords) {
    for (const std::string_view word : words) encode_word(word, workspace, tokens);
    return;
  }
  std::unique_ptr<WordCache> known = caches_->take();
  for (const std::string_view word : words) {
    if (word.empty() || word.size() > WordCache::kMaxBytes) {
      encode_word(word, workspace, tokens);
      continue;
    }
    WordCache::Entry& entry = known->find(word);
    if (entry.count > 0) {
      known->append_tokens(entry, tokens);
    } else {
      const size_t begin = tokens.size();
      encode_word(word, workspace, tokens);
      known->set_tokens(entry, std::span(tokens).subspan(begin));
    }
  }
  caches_->give_back(std::move(known));
}

void BpeModel::encode_word(std::string_view word, BpeWorkspace& workspace,
                           std::vector<TokenId>& tokens) const {
  if (spec_->ignore_merges) {
    if (const auto found = word_ids_.find(word); found != word_ids_.end()) {
      tokens.push_back(found->second);
      return;
    }
  }
  workspace.symbols.clear();
  if (spec_->kind == TokenizerKind::kByteLevelBpe) {
    split_into_bytes(word, workspace.symbols);
  } else {
    split_into_characters(word, workspace.symbols);
  }
  merge_symbols(word, workspace);
  emit(word, workspace.symbols, tokens);
}

void BpeModel::add_symbol(TokenId id, size_t begin, size_t length, std::vector<BpeSymbol>& symbols) const {
  const auto index = static_cast<int32_t>(symbols.size());
  if (index > 0) symbols.back().next = index;
  symbols.push_back({id, index - 1, -1, static_cast<uint32_t>(begin), static_cast<uint32_t>(length)});
}

void BpeModel::split_into_bytes(std::string_view word, std::vector<BpeSymbol>& symbols) const {
  bool after_unknown = false;
  for (size_t i = 0; i < word.size(); ++i) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(word[i])];
    if (id != kNoPiece) {
      add_symbol(id, i, 1, symbols);
    } else if (spec_->unknown && !(after_unknown && spec_->fuse_unknown)) {
      add_symbol(*spec_->unknown, i, 1, symbols);
    }
    after_unknown = id == kNoPiece;
  }
}

void BpeModel::split_into_characters(std::string_view word, std::vector<BpeSymbol>& symbols) const {
  // An unknown symbol is emitted before the next known or unknown character, but after byte pieces, which
  // overtake it. Hugging Face tokenizers behave so for vocabularies that have only some byte pieces.
  size_t waiting_begin = 0;
  size_t waiting_length = 0;  // 0: no unknown symbol waits
  const auto flush = [&] {
    if (waiting_length > 0) add_symbol(*spec_->unknown, waiting_begin, waiting_length, symbols);
    waiting_length = 0;
  };
  for (size_t begin = 0, length = 0; begin < word.size(); begin += length) {
    length = static_cast<size_t>(utf8::decode(word.substr(begin)).length);
    const std::string_view character = word.substr(begin, length);
    const auto found = word_ids_.find(character);
    if (by_score_) {
      add_symbol(found == word_ids_.end() ? kNoPiece : found->second, begin, length, symbols);
    } else if (found != word_ids_.end()) {
      flush();
      add_symbol(found->second, begin, length, symbols);
    } else if (!append_byte_pieces(character, begin, symbols) && spec_->unknown) {
      if (!spec_->fuse_unknown) flush();
      if (waiting_length == 0) waiting_begin = begin;
      waiting_length += length;
    }
  }
  flush();
}

bool BpeModel::append_byte_pieces(std::string_view bytes, size_t begin,
                                  std::vector<BpeSymbol>& symbols) const {
  if (!has_byte_pieces(bytes)) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    add_symbol(byte_ids_[static_cast<unsigned char>(bytes[i])], begin + i, 1, symbols);
  }
  return true;
}

std::optional<BpeCandidate> BpeModel::find_candidate(std::string_view word, const BpeSymbol& left,
                                                     const BpeSymbol& right) const {
  if (by_score_) {
    const size_t length = left.length + right.length;
    if (length > longest_piece_) return std::nullopt;
    const auto found = word_ids_.find(word.substr(left.begin, length));
    if (found == word_ids_.end()) return std::nullopt;
    return BpeCandidate{-spec_->scores[found->second], 0, found->second};
  }
  const Merge* merge = merges_.find(left.id, right.id);
  if (merge == nullptr) return std::nullopt;
  return BpeCandidate{static_cast<double>(merge->rank), 0, merge->merged};
}

void BpeModel::push_candidate(std::string_view word, int32_t position, BpeWorkspace& workspace) const {
  const BpeSymbol& left = workspace.symbols[position];
  auto candidate = find_candidate(word, left, workspace.symbols[left.next]);
  if (!candidate) return;
  candidate->position = position;
  workspace.heap.push_back(*candidate);
  std::push_heap(workspace.heap.begin(), workspace.heap.end(), is_later);
}

void BpeModel::merge_symbols(std::string_view word, BpeWorkspace& workspace) const {
  std::vector<BpeSymbol>& symbols = workspace.symbols;
  std::vector<BpeCandidate>& heap = workspace.heap;
  heap.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) push_candidate(word, static_cast<int32_t>(i), workspace);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), is_later);
    const BpeCandidate best = heap.back();
    heap.pop_back();
    BpeSymbol& left = symbols[best.position];
    if (left.length == 0 || left.next < 0) continue;
    BpeSymbol& right = symbols[left.next];
    const auto current = find_candidate(word, left, right);
    if (!current || current->merged != best.merged) continue;  // a side has changed since the merge was found
    left.id = best.merged;
    left.length += right.length;
    left.next = right.next;
    right.length = 0;
    if (left.next >= 0) {
      symbols[left.next].previous = best.position;
      push_candidate(word, best.position, workspace);
    }
    if (left.previous >= 0) push_candidate(word, left.previous, workspace);
  }
}

void BpeModel::emit(std::string_view word, const std::vector<BpeSymbol>& symbols,
                    std::vector<TokenId>& tokens) const {
  bool after_unknown = false;
  for (const BpeSymbol& symbol : symbols) {
    if (symbol.length == 0) continue;
    const std::string_view text = word.substr(symbol.begin, symbol.length);
    if (symbol.id != kNoPiece) {
      tokens.push_back(symbol.id);
    } else if (has_byte_pieces(text)) {
      for (const char byte : text) tokens.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    } else if (spec_->unknown && !(after_unknown && spec_->fuse_unknown)) {
      tokens.push_back(*spec_->unknown);
    }
    after_unknown = symbol.id == kNoPiece;
  }
}

}  // namespace outrider
