/* SPDX-License-Identifier: Apache-2.0 */
/* An answer through the C API, printed as it is written, with the statistics of speculation.
 * Usage: generate MODEL PROMPT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "outrider/outrider.h"

static void print_text(void* user, const outrider_progress* progress) {
  (void)user;
  fwrite(progress->text, 1, progress->text_size, stdout);
  fflush(stdout);
}

static int fail(void) {
  fprintf(stderr, "%s\n", outrider_last_error());
  return 1;
}

static outrider_status open_engine(const char* model, outrider_engine** engine) {
  outrider_options* options = outrider_options_new();
  if (options == NULL) return OUTRIDER_ERROR_RESOURCE;
  outrider_options_add(options, "model", model);
  outrider_options_add(options, "speculative", "ngram");
  const outrider_status status = outrider_engine_open(options, engine);
  outrider_options_free(options);
  return status;
}

static outrider_status answer(outrider_engine* engine, const char* prompt, outrider_completion** completion) {
  int32_t* tokens = NULL;
  size_t count = 0;
  outrider_status status = outrider_tokenize(engine, prompt, strlen(prompt), true, true, &tokens, &count);
  if (status != OUTRIDER_OK) return status;
  outrider_request* request = outrider_request_new(engine);
  outrider_request_set_prompt(request, tokens, count);
  outrider_free(tokens);
  status = outrider_request_set(request, "max_tokens", "64");
  if (status == OUTRIDER_OK) status = outrider_generate(engine, request, print_text, NULL, completion);
  outrider_request_free(request);
  return status;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: generate MODEL PROMPT\n"), 2;
  outrider_engine* engine = NULL;
  outrider_completion* completion = NULL;
  if (open_engine(argv[1], &engine) != OUTRIDER_OK) return fail();
  if (answer(engine, argv[2], &completion) != OUTRIDER_OK) return fail();
  const outrider_statistics* statistics = outrider_completion_statistics(completion);
  printf("\n[%" PRId64 " of %" PRId64 " drafted tokens accepted, %.2f tokens per pass]\n", statistics->accepted,
         statistics->drafted, statistics->acceptance_length);
  outrider_completion_free(completion);
  outrider_engine_close(engine);
  return 0;
}
