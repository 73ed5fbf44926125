// SPDX-License-Identifier: Apache-2.0
#include "corpus/open_corpus.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/counter_rng.h"
#include "base/log.h"
#include "corpus/corpus_file.h"
#include "corpus/text_sources.h"
#include "corpus/text_tokens.h"
#include "platform/durable_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

uint64_t add_to_hash(uint64_t hash, std::string_view text) {
  for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min(sizeof(word), text.size() - i));
    hash = mix64(hash ^ word);
  }
  return mix64(hash ^ text.size());
}

// Equal for tokenizers with the same pieces.
uint64_t tokenizer_hash(const Tokenizer& tokenizer) {
  uint64_t hash = static_cast<uint64_t>(tokenizer.vocab_size());
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) hash = add_to_hash(hash, tokenizer.token_piece(id));
  return hash;
}

// The name tells lists of texts and tokenizers apart; texts that changed replace their index.
fs::path index_path(const CorpusOptions& options, uint64_t tokenizer) {
  uint64_t hash = tokenizer;
  for (const fs::path& text : options.texts)
    hash = add_to_hash(hash, fs::absolute(text).lexically_normal().string());
  const fs::path first = fs::absolute(options.texts.front()).lexically_normal();
  const fs::path name = first.has_filename() ? first : first.parent_path();
  return options.cache / fmt::format("{}-{:016x}.corpus", name.stem().string(), hash);
}

// Held by the one process that builds an index.
Result<FileDescriptor> lock_index(const fs::path& index) {
  const fs::path path = index.string() + ".lock";
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  const auto error = [&] {
    return io_error("corpus: cannot lock " + path.string() + ": " + std::strerror(errno));
  };
  if (file.get() < 0) return error();
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) return error();
  log_info("corpus: another process builds " + index.string() + "; waiting for it");
  while (::flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return error();
  }
  return file;
}

std::string size_text(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return bytes < 1'000'000 ? fmt::format("{:.1f} kB", size / 1e3) : fmt::format("{:.1f} MB", size / 1e6);
}

// Tells every few seconds how far a long work is.
class ProgressLog {
 public:
  ProgressLog(const char* what, int64_t total) : what_(what), total_(total) {}

  void at(int64_t done) {
    constexpr double kEveryMs = 5000;
    const double now = now_ms();
    if (now - last_ < kEveryMs) return;
    last_ = now;
    log_info(fmt::format("corpus: {}% {}", total_ == 0 ? 100 : 100 * done / total_, what_));
  }

 private:
  const char* what_;
  int64_t total_;
  double last_ = now_ms();
};

// A file that changed a moment ago could change again without a trace in its stamp.
void wait_until_settled(const TextSources& sources) {
  constexpr std::chrono::milliseconds kClockSteps(100);  // several steps of the clock that stamps files
  const auto changed = std::chrono::nanoseconds(sources.last_change());
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (now >= changed && now < changed + kClockSteps) std::this_thread::sleep_for(kClockSteps);
}

Status build_index(const CorpusOptions& options, const TextSources& sources, const Tokenizer& tokenizer,
                   const CorpusKey& key, const fs::path& path) {
  const double start = now_ms();
  log_info(fmt::format("corpus: building the index of {} of text, once: {}", size_text(sources.bytes),
                       path.string()));
  CorpusFacts facts;
  ProgressLog reading("of the text is in tokens", sources.bytes);
  OUTRIDER_TRY(ScratchFile tokens, tokenize_texts(sources, tokenizer, path.parent_path(), options.threads,
                                                  facts, [&](int64_t bytes) { reading.at(bytes); }));
  const double tokenized = now_ms();
  OUTRIDER_TRY(const std::span<const std::byte> bytes, tokens.map());
  const TokenText text{
      .bytes = bytes, .width = TokenText::width_for(key.separator), .separator = key.separator};
  ProgressLog sorting("of the places are sorted", facts.tokens);
  OUTRIDER_RETURN_IF_ERROR(CorpusFile::write(path, key, facts, text, options.threads,
                                             [&](int64_t places) { sorting.at(places); }));
  const double seconds = (now_ms() - start) / 1e3;
  log_info(fmt::format("corpus: {} tokens in {:.1f} s, {:.1f} s of them for reading; {} of text a second",
                       facts.tokens, seconds, (tokenized - start) / 1e3,
                       size_text(std::llround(static_cast<double>(facts.text_bytes) / seconds))));
  return {};
}

}  // namespace

Result<std::shared_ptr<const Corpus>> open_corpus(const CorpusOptions& options, const Tokenizer& tokenizer) {
  if (options.cache.empty())
    return usage_error(
        "--corpus expects a folder for its index, found none; leave out --cache-dir none, or set "
        "corpus_cache");
  OUTRIDER_TRY(const TextSources sources, find_texts(options.texts));
  const CorpusKey key{
      .tokenizer = tokenizer_hash(tokenizer), .texts = sources.stamp(), .separator = tokenizer.vocab_size()};
  const fs::path path = index_path(options, key.tokenizer);
  std::string reason;
  if (auto found = CorpusFile::open(path, key, reason)) return *found;
  OUTRIDER_RETURN_IF_ERROR(make_directories(options.cache));
  OUTRIDER_TRY(const FileDescriptor lock, lock_index(path));
  if (auto found = CorpusFile::open(path, key, reason)) return *found;
  if (!reason.empty()) log_info("corpus: " + path.string() + " " + reason);
  wait_until_settled(sources);
  OUTRIDER_RETURN_IF_ERROR(build_index(options, sources, tokenizer, key, path));
  if (auto found = CorpusFile::open(path, key, reason)) return *found;
  return io_error("corpus: " + path.string() + " " + reason + " although it was written just now");
}

}  // namespace outrider
