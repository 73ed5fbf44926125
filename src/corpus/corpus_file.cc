// SPDX-License-Identifier: Apache-2.0
#include "corpus/corpus_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/counter_rng.h"
#include "corpus/context_order.h"
#include "platform/durable_file.h"

namespace outrider {
namespace {

constexpr size_t kCorpusPage = 4096;

struct CorpusHeader {
  std::array<char, 16> magic = {};
  uint64_t byte_order = 0;
  uint64_t tokenizer = 0, texts = 0;
  int64_t separator = 0;
  int64_t files = 0, documents = 0, text_bytes = 0, tokens = 0;
  int64_t text_size = 0;  // ids of the text, separators included
  int64_t places = 0;
  uint64_t check = 0;  // of all before it
};

constexpr std::array<char, 16> kCorpusMagic = {"outrider text 1"};
constexpr uint64_t kByteOrder = 0x0102030405060708;

uint64_t check_of(const CorpusHeader& header) {
  std::array<uint64_t, offsetof(CorpusHeader, check) / sizeof(uint64_t)> words = {};
  std::memcpy(words.data(), &header, sizeof(words));
  uint64_t hash = 0;
  for (const uint64_t word : words) hash = mix64(hash ^ word);
  return hash;
}

size_t to_page(size_t bytes) { return (bytes + kCorpusPage - 1) / kCorpusPage * kCorpusPage; }

// Where the parts of the file begin.
struct CorpusLayout {
  explicit CorpusLayout(const CorpusHeader& header)
      : text_bytes(static_cast<size_t>(header.text_size) *
                   static_cast<size_t>(TokenText::width_for(static_cast<TokenId>(header.separator)))),
        firsts(text + to_page(text_bytes)),
        firsts_bytes((static_cast<size_t>(header.separator) + 1) * sizeof(uint32_t)),
        places(firsts + to_page(firsts_bytes)),
        end(places + to_page(static_cast<size_t>(header.places) * sizeof(uint32_t))) {}

  size_t text = kCorpusPage;
  size_t text_bytes, firsts, firsts_bytes, places, end;
};

std::string_view chars_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const uint32_t> numbers_at(std::span<const std::byte> bytes, size_t offset, size_t count) {
  return {reinterpret_cast<const uint32_t*>(bytes.data() + offset), count};
}

Status write_part(std::string_view bytes, const ByteSink& sink) {
  static const std::string kZeros(kCorpusPage, '\0');
  OUTRIDER_RETURN_IF_ERROR(sink(bytes));
  return sink(std::string_view(kZeros).substr(0, to_page(bytes.size()) - bytes.size()));
}

// Whether firsts rise to the number of places, and every place that is looked at follows the token that it is
// sorted by. The looks are spread over the file.
bool is_plausible(const TokenText& text, std::span<const uint32_t> firsts, std::span<const uint32_t> places) {
  constexpr size_t kLooks = 16;
  if (!std::ranges::is_sorted(firsts) || firsts.back() != places.size()) return false;
  for (size_t look = 0; look < std::min(kLooks, places.size()); ++look) {
    const size_t index = (places.size() - 1) * look / (kLooks - 1);
    const int64_t place = places[index];
    if (place <= kTextPadding || place >= text.size()) return false;
    const TokenId before = text[place - 1];
    if (before < 0 || before >= text.separator) return false;
    const auto token = static_cast<size_t>(before);
    if (index < firsts[token] || index >= firsts[token + 1]) return false;
  }
  return true;
}

std::string mismatch(std::span<const std::byte> bytes, const CorpusHeader& header, const CorpusKey& key) {
  if (header.magic != kCorpusMagic || header.byte_order != kByteOrder) return "is no index of this version";
  if (header.check != check_of(header)) return "is damaged";
  if (header.tokenizer != key.tokenizer || header.separator != key.separator)
    return "is of another tokenizer";
  if (header.texts != key.texts) return "is of the texts before they changed";
  if (header.text_size < kTextPadding || bytes.size() != CorpusLayout(header).end) return "is damaged";
  return {};
}

}  // namespace

std::optional<std::shared_ptr<const Corpus>> CorpusFile::open(const std::filesystem::path& path,
                                                              const CorpusKey& key, std::string& reason) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  Result<MappedFile> mapped = MappedFile::open(path);
  CorpusHeader header;
  if (!mapped.ok() || mapped->bytes().size() < kCorpusPage) {
    reason = "is damaged";
    return std::nullopt;
  }
  std::memcpy(&header, mapped->bytes().data(), sizeof(header));
  reason = mismatch(mapped->bytes(), header, key);
  if (!reason.empty()) return std::nullopt;
  const CorpusLayout layout(header);
  std::shared_ptr<Corpus> corpus(new Corpus(std::move(mapped).value()));
  const std::span<const std::byte> bytes = corpus->file_.bytes();
  corpus->path_ = path;
  corpus->facts_ = {.files = header.files,
                    .documents = header.documents,
                    .text_bytes = header.text_bytes,
                    .tokens = header.tokens,
                    .places = header.places};
  corpus->text_ = {.bytes = bytes.subspan(layout.text, layout.text_bytes),
                   .width = TokenText::width_for(key.separator),
                   .separator = key.separator};
  corpus->firsts_ = numbers_at(bytes, layout.firsts, layout.firsts_bytes / sizeof(uint32_t));
  corpus->places_ = numbers_at(bytes, layout.places, static_cast<size_t>(header.places));
  if (!is_plausible(corpus->text_, corpus->firsts_, corpus->places_) || !corpus->file_.check().ok()) {
    reason = "is damaged";
    return std::nullopt;
  }
  return corpus;
}

Status CorpusFile::write(const std::filesystem::path& path, const CorpusKey& key, const CorpusFacts& facts,
                         const TokenText& text, int threads, const std::function<void(int64_t)>& progress) {
  OUTRIDER_TRY(const std::vector<uint32_t> firsts, count_places(text));
  CorpusHeader header{.magic = kCorpusMagic,
                      .byte_order = kByteOrder,
                      .tokenizer = key.tokenizer,
                      .texts = key.texts,
                      .separator = key.separator,
                      .files = facts.files,
                      .documents = facts.documents,
                      .text_bytes = facts.text_bytes,
                      .tokens = facts.tokens,
                      .text_size = text.size(),
                      .places = firsts.back()};
  header.check = check_of(header);
  return write_durably(path, [&](const ByteSink& sink) -> Status {
    OUTRIDER_RETURN_IF_ERROR(write_part(chars_of(std::as_bytes(std::span(&header, 1))), sink));
    OUTRIDER_RETURN_IF_ERROR(write_part(chars_of(text.bytes), sink));
    OUTRIDER_RETURN_IF_ERROR(write_part(chars_of(std::as_bytes(std::span(firsts))), sink));
    int64_t sorted = 0;
    OUTRIDER_RETURN_IF_ERROR(sort_places(text, firsts, threads, [&](std::span<const uint32_t> places) {
      sorted += static_cast<int64_t>(places.size());
      progress(sorted);
      return sink(chars_of(std::as_bytes(places)));
    }));
    const size_t bytes = static_cast<size_t>(sorted) * sizeof(uint32_t);
    return sink(std::string(to_page(bytes) - bytes, '\0'));
  });
}

}  // namespace outrider
