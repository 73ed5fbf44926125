// SPDX-License-Identifier: Apache-2.0
// How much text and training a head gets, how long that takes, and what comes of it.
#pragma once

#include <cstdint>
#include <string>

namespace outrider::training {

// The work of this machine for one target and one kind of head, as measured.
struct JobRates {
  double reading = 1.0;       // tokens of prompts that the target reads in a second, many texts at a time
  double writing = 1.0;       // and tokens that it writes
  double first_step_s = 0.0;  // seconds of a step of training that unrolls the head once
  double last_step_s = 0.0;   // of one that unrolls it as often as the last ones do
  double open_s = 0.0;        // seconds until an engine is open
  double token_s = 0.0;       // seconds of a token of measurements and proof
  double head_share = 0.0;    // bytes that a draft of one level reads, of the bytes that a pass reads
  int64_t parameters = 0;     // of the head
};

// The sizes of texts, steps and measurements.
struct JobSizes {
  double question_tokens = 0.0;  // that the target writes for a question; 0: others gave the text
  double prompt_tokens = 80.0;   // of a question in the chat template
  double answer_tokens = 192.0;
  int64_t batch_tokens = 2048;  // of a step, at most
  double growth = 0.5;          // share of the training in which the unrolled steps grow
  int64_t measured_prompts = 24;
  int64_t measured_tokens = 64;  // of each
  int64_t levels = 5;            // of drafts

  double window_tokens() const { return prompt_tokens + answer_tokens; }
  double step_tokens() const;  // of text, without padding
};

struct HeadPlan {
  int64_t prompts = 0;  // that the target answers
  int64_t steps = 0;
  int64_t evaluate_every = 0;
  int64_t checkpoint_every = 0;
};

// The training that fits into so many hours. Writing takes as long as training, unless this would be less
// than one pass over the text or more than five.
HeadPlan plan_for_hours(double hours, const JobRates& rates, const JobSizes& sizes);
// Two passes over the text. It depends on nothing measured but for the time between checkpoints.
HeadPlan plan_for_steps(int64_t steps, const JobRates& rates, const JobSizes& sizes);

// Tokens per pass, the target's own included.
struct DraftLengths {
  double chain = 1.0;  // of 5 levels
  double tree = 1.0;   // of 24 nodes
};
// The lengths of EAGLE-3 heads of SmolLM2-135M on Spec-Bench after so many tokens of training; between the
// measured points a line over the logarithm, beyond them the nearest one.
DraftLengths expected_lengths(double trained_tokens);

struct JobForecast {
  double text_s = 0.0, training_s = 0.0, measuring_s = 0.0, proof_s = 0.0;
  double trained_tokens = 0.0;
  double passes = 0.0;  // over the text
  DraftLengths lengths;
  double speedup = 1.0;  // of text in chains over plain text, where passes wait for memory

  double total_s() const { return text_s + training_s + measuring_s + proof_s; }
};
JobForecast forecast(const HeadPlan& plan, const JobRates& rates, const JobSizes& sizes);

// How often as fast text is that drafts chains: length / (1 + levels * head_share).
double chain_speedup(double length, int64_t levels, double head_share);

// The lines that a run begins with.
std::string forecast_text(const HeadPlan& plan, const JobForecast& forecast);

}  // namespace outrider::training
