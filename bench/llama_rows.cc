// SPDX-License-Identifier: Apache-2.0
// Times passes of llama.cpp with logits of all rows, as a pass that checks drafts needs them; llama-bench
// computes only the logits of the last row. The script compare_llama.py builds and runs it.
//
//   llama_rows MODEL.gguf THREADS CONTEXT REPETITIONS ROWS[,ROWS...] [q8_0]
//
// With q8_0 keys and values are cached in that type, else in f16; attention is llama.cpp's flash attention.
//
// Prints a JSON object: the milliseconds of every repetition by rows.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "llama.h"

namespace {

struct Options {
  std::string model;
  int threads = 1;
  int context = 0;
  int repetitions = 1;
  std::vector<int> rows;
  bool has_q8_cache = false;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "llama_rows: %s\n", what.c_str());
  std::exit(1);
}

// Tokens that follow each other at positions `first` and after.
class Batch {
 public:
  Batch(int first, int count, int vocabulary, bool with_logits) : batch_(llama_batch_init(count, 0, 1)) {
    batch_.n_tokens = count;
    for (int i = 0; i < count; ++i) {
      batch_.token[i] = std::rand() % vocabulary;
      batch_.pos[i] = first + i;
      batch_.n_seq_id[i] = 1;
      batch_.seq_id[i][0] = 0;
      batch_.logits[i] = with_logits ? 1 : 0;
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() { llama_batch_free(batch_); }

  void run(llama_context* context) const {
    if (llama_decode(context, batch_) != 0) fail("a pass failed");
    llama_synchronize(context);
  }

 private:
  llama_batch batch_;
};

double timed_pass(llama_context* context, int first, int rows, int vocabulary) {
  const Batch batch(first, rows, vocabulary, true);
  const auto start = std::chrono::steady_clock::now();
  batch.run(context);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  llama_memory_seq_rm(llama_get_memory(context), 0, first, -1);
  return taken.count();
}

void time_rows(const Options& options) {
  const std::unique_ptr<llama_model, void (*)(llama_model*)> model(
      llama_model_load_from_file(options.model.c_str(), llama_model_default_params()), llama_model_free);
  if (model == nullptr) fail("cannot load " + options.model);
  const int max_rows = *std::max_element(options.rows.begin(), options.rows.end());
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(options.context + max_rows);
  params.n_batch = params.n_ctx;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = params.type_v = options.has_q8_cache ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
  const std::unique_ptr<llama_context, void (*)(llama_context*)> context(
      llama_init_from_model(model.get(), params), llama_free);
  if (context == nullptr) fail("cannot make a context");
  ggml_threadpool_params pool_params = ggml_threadpool_params_default(options.threads);
  const std::unique_ptr<ggml_threadpool, void (*)(ggml_threadpool*)> pool(ggml_threadpool_new(&pool_params),
                                                                          ggml_threadpool_free);
  llama_attach_threadpool(context.get(), pool.get(), nullptr);
  llama_set_n_threads(context.get(), options.threads, options.threads);
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
  if (options.context > 0) Batch(0, options.context, vocabulary, false).run(context.get());

  std::printf("{");
  for (size_t i = 0; i < options.rows.size(); ++i) {
    const int rows = options.rows[i];
    timed_pass(context.get(), options.context, rows, vocabulary);  // to warm up
    std::printf("%s\"%d\": [", i == 0 ? "" : ", ", rows);
    for (int r = 0; r < options.repetitions; ++r)
      std::printf("%s%.4f", r == 0 ? "" : ", ", timed_pass(context.get(), options.context, rows, vocabulary));
    std::printf("]");
  }
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const bool has_q8_cache = argc == 7 && std::string(argv[6]) == "q8_0";
  if (argc != 6 && !has_q8_cache)
    fail("expected MODEL.gguf THREADS CONTEXT REPETITIONS ROWS[,ROWS...] and perhaps q8_0");
  Options options{argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), {}, has_q8_cache};
  std::stringstream list(argv[5]);
  for (std::string rows; std::getline(list, rows, ',');) options.rows.push_back(std::atoi(rows.c_str()));
  const bool are_counts = options.threads > 0 && options.repetitions > 0 && options.context >= 0 &&
                          !options.rows.empty() &&
                          *std::min_element(options.rows.begin(), options.rows.end()) > 0;
  if (!are_counts) fail("expected whole numbers above 0, or 0 for CONTEXT");
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all();
  llama_backend_init();
  time_rows(options);
  llama_backend_free();
  return 0;
}
