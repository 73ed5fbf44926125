// SPDX-License-Identifier: Apache-2.0
// Token ids of many texts, for tools/compare_tokenizers.py: tokenizer_dump <directory with tokenizer.json>
//   stdin:  texts, each with a NUL after it
//   stdout: one line per text, its ids separated by spaces, a tab, and "same" or "differs" for
//   decode(encode(text))
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "tokenizer/tokenizer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tokenizer_dump DIRECTORY < texts\n");
    return 2;
  }
  auto spec = outrider::read_tokenizer_json(argv[1]);
  if (!spec.ok()) {
    std::fprintf(stderr, "%s\n", spec.error().message.c_str());
    return 1;
  }
  const auto tokenizer = outrider::Tokenizer::create(std::move(*spec));
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  std::string text;
  while (std::getline(std::cin, text, '\0')) {
    std::string line;
    const std::vector<outrider::TokenId> tokens = (*tokenizer)->encode(text);
    for (const outrider::TokenId token : tokens) line += std::to_string(token) + " ";
    std::printf("%s\t%s\n", line.c_str(), (*tokenizer)->decode(tokens) == text ? "same" : "differs");
  }
  return 0;
}
