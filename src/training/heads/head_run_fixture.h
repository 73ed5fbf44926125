// SPDX-License-Identifier: Apache-2.0
// Short runs over a small random target, for tests.
#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <utility>

#include "formats/model_file.h"
#include "training/core/test_files.h"
#include "training/head_data/documents.h"
#include "training/head_data/head_data.h"
#include "training/heads/head_recipes.h"

namespace outrider::training {

inline std::filesystem::path target_path() {
  return std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/data/models/llama_tied";
}

inline std::string text_lines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (int word = 0; word < 6 + i % 9; ++word) text += "word" + std::to_string((i * 7 + word) % 23) + " ";
    lines += R"({"text": ")" + text + "\"}\n";
  }
  return lines;
}

// The recipe of this subcommand after parsing `arguments`, which are its options.
inline HeadRecipe recipe_of(const std::string& command, const std::string& arguments = {}) {
  for (HeadRecipe& recipe : head_recipes()) {
    if (recipe.command != command) continue;
    CLI::App app;
    recipe.add_options(app);
    app.parse(arguments);
    return recipe;
  }
  ADD_FAILURE() << command;
  return {};
}

class HeadRunTest : public testing::Test {
 protected:
  HeadRunTest() { files_.write_bytes("text.jsonl", text_lines(160)); }

  HeadOptions options(const std::string& out, int64_t steps) const {
    HeadOptions options;
    options.target = target_path();
    options.data = {files_.path("text.jsonl")};
    options.out = files_.path(out);
    options.context = 32;
    options.batch_tokens = 64;
    options.steps = steps;
    options.warmup = 2;
    options.checkpoint_every = 4;
    options.evaluate_every = 4;
    options.threads = 1;
    options.prompt_limit = 2;
    options.measured_tokens = 8;
    options.measured_depth = 2;
    options.measured_nodes = 4;
    return options;
  }

  HeadData data(uint64_t seed = 1) const {
    auto target = open_model(target_path());
    EXPECT_TRUE(target.ok());
    auto sources = read_documents(files_.path("text.jsonl"), *target, false);
    EXPECT_TRUE(sources.ok()) << sources.error().message;
    auto data = HeadData::create(std::move(*sources), {.context = 32, .batch_tokens = 64, .seed = seed});
    EXPECT_TRUE(data.ok()) << data.error().message;
    return std::move(*data);
  }

  TestFiles files_;
};

}  // namespace outrider::training
