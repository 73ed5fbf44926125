// SPDX-License-Identifier: Apache-2.0
// Which texts an output may be: grammars over bytes, from GBNF, regular expressions and JSON schemas.
// docs/structured_output.md says what of these is supported.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"

namespace outrider {

using GrammarExpr = int32_t;  // of one GrammarBuilder

struct GrammarLimits {
  static constexpr size_t kTextBytes = size_t{256} << 10;
  static constexpr int kNesting = 200;
  static constexpr int kRepetition = 4096;
  static constexpr size_t kNodes = 200'000;
  static constexpr double kSeconds = 2;  // from the first part to the whole grammar
};

// A pushdown automaton over bytes, without choices that consume nothing and lead nowhere: from every place
// that can be reached, some text leads to the end. Immutable.
struct Grammar {
  enum class NodeKind : uint8_t {
    kBytes,   // one byte of byte_sets[index], then `next`
    kSplit,   // any of `count` targets from index on
    kCall,    // the procedure `index`, then `next`
    kLoop,    // the body of loops[index], as often as it says, then `next`
    kReturn,  // the end of a procedure
    kAccept,  // the end of the text
    kEscape,  // stands below a stack whose rest is not known
  };
  struct Node {
    NodeKind kind = NodeKind::kReturn;
    int32_t index = 0;
    int32_t next = 0;
    int32_t count = 0;
  };
  struct Loop {
    int32_t body = 0;  // procedure; takes at least one byte
    int32_t min = 0;
    int32_t max = 0;  // -1: any number
  };
  struct Procedure {
    int32_t entry = 0;
    int32_t rank = 0;  // what it calls before any byte has a higher one
    bool is_nullable = false;
  };
  static constexpr int32_t kReturnNode = 0;
  static constexpr int32_t kAcceptNode = 1;
  static constexpr int32_t kEscapeNode = 2;

  std::vector<Node> nodes;
  std::vector<int32_t> targets;
  std::vector<std::bitset<256>> byte_sets;
  std::vector<Loop> loops;
  std::vector<Procedure> procedures;
  std::vector<int32_t> by_rank;  // procedures
  int32_t root = 0;              // procedure

  // Bytes that no set tells apart are one class.
  std::array<uint8_t, 256> byte_class{};
  std::vector<uint8_t> class_byte;  // one byte of each class
};

using SharedGrammar = std::shared_ptr<const Grammar>;

// llama.cpp's GBNF. Errors name line and column.
Result<SharedGrammar> parse_gbnf(std::string_view text);

// Texts that the expression matches as a whole. Errors name the position.
Result<SharedGrammar> grammar_of_regex(std::string_view pattern);

// JSON texts valid under the schema. Errors name the place in the schema: "$.properties.age".
Result<SharedGrammar> grammar_of_json_schema(std::string_view schema);

// Any JSON object.
SharedGrammar json_object_grammar();

// Parts of larger grammars.
class GrammarBuilder;
Result<GrammarExpr> regex_expression(GrammarBuilder& builder, std::string_view pattern);
Result<GrammarExpr> json_schema_expression(GrammarBuilder& builder, std::string_view schema);
GrammarExpr json_object_expression(GrammarBuilder& builder);

// Free text in which every trigger begins something of its own form.
struct TriggeredForm {
  std::string trigger;  // bytes of text; control tokens are spelled by control_token_bytes()
  GrammarExpr body = 0;
};
struct TriggerOptions {
  bool is_required = false;  // the text may not end before one of the forms
  bool is_repeated = true;   // free text again behind a form, else the end
};
// Errors: no trigger, an empty one, or one that contains another.
Result<GrammarExpr> triggered_expression(GrammarBuilder& builder, const std::vector<TriggeredForm>& forms,
                                         const TriggerOptions& options);

// How grammars spell a control token: between two bytes that UTF-8 never has.
std::string control_token_bytes(std::string_view piece);

}  // namespace outrider
