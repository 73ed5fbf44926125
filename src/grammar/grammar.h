// SPDX-License-Identifier: Apache-2.0
// Grammars over bytes that restrict an output, made from GBNF, regular expressions and JSON schemas.
// docs/reference/structured_output.md lists the supported features.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"

namespace outrider {

using GrammarExpr = int32_t;  // index of an expression of one GrammarBuilder

struct GrammarLimits {
  static constexpr size_t kTextBytes = size_t{256} << 10;
  static constexpr int kNesting = 200;
  static constexpr int kRepetition = 4096;
  static constexpr size_t kNodes = 200'000;
  static constexpr double kSeconds = 2;  // from the creation of the builder to the end of build()
};

// A pushdown automaton over bytes. From every reachable node some text leads to the end. Immutable.
struct Grammar {
  enum class NodeKind : uint8_t {
    kBytes,   // one byte of byte_sets[index], then `next`
    kSplit,   // any of targets[index, index + count)
    kCall,    // the procedure `index`, then `next`
    kLoop,    // the body of loops[index], min to max times, then `next`
    kReturn,  // the end of a procedure
    kAccept,  // the end of the text
    kEscape,  // the bottom of a stack whose rest is not known
  };
  struct Node {
    NodeKind kind = NodeKind::kReturn;
    int32_t index = 0;
    int32_t next = 0;
    int32_t count = 0;
  };
  struct Loop {
    int32_t body = 0;  // procedure that reads at least one byte
    int32_t min = 0;
    int32_t max = 0;  // -1: unbounded
  };
  struct Procedure {
    int32_t entry = 0;
    int32_t rank = 0;  // lower than the ranks of procedures it calls before it reads a byte
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
  std::vector<int32_t> by_rank;  // procedures in the order of their ranks
  int32_t root = 0;              // procedure of the whole text

  // Bytes that are in the same byte sets form a class.
  std::array<uint8_t, 256> byte_class{};
  std::vector<uint8_t> class_byte;  // one byte of each class
};

using SharedGrammar = std::shared_ptr<const Grammar>;

// Parses llama.cpp's GBNF. Errors name line and column.
Result<SharedGrammar> parse_gbnf(std::string_view text);

// A grammar of the texts that the regular expression matches as a whole. Errors name the position.
Result<SharedGrammar> grammar_of_regex(std::string_view pattern);

// A grammar of the JSON texts that are valid under the schema. Errors name the place in the schema:
// "$.properties.age".
Result<SharedGrammar> grammar_of_json_schema(std::string_view schema);

// A grammar of all JSON objects.
SharedGrammar json_object_grammar();

// Expressions for parts of larger grammars.
class GrammarBuilder;
Result<GrammarExpr> regex_expression(GrammarBuilder& builder, std::string_view pattern);
Result<GrammarExpr> gbnf_expression(GrammarBuilder& builder, std::string_view text);
Result<GrammarExpr> json_schema_expression(GrammarBuilder& builder, std::string_view schema);
GrammarExpr json_object_expression(GrammarBuilder& builder);

// The arguments of a function with this schema. Where no automaton can hold the schema, they are any object,
// and `problem` says why. Errors: the schema makes no sense, or no value is valid under it.
struct ArgumentsExpression {
  GrammarExpr expression = 0;
  std::string problem;
};
Result<ArgumentsExpression> arguments_expression(GrammarBuilder& builder, std::string_view schema);

// How values are written that are no JSON.
struct ValueNotation {
  bool is_python = false;  // True, False and None
  // The mark around texts, which stand as they are, and which do not contain it; members have bare names.
  // Empty: texts and names are JSON's.
  std::string quote = {};
  std::string quote_bytes = {};  // the mark's spelling; empty: texts have no mark before them
  bool is_one_line = false;      // texts whose content is limited have no line break
};

// The expressions between the arguments of a call that are no JSON object.
struct ArgumentNotation {
  ValueNotation values = {};
  GrammarExpr before_name = 0;
  GrammarExpr before_text = 0;   // between a name and a text
  GrammarExpr before_value = 0;  // between a name and another value
  GrammarExpr after_value = 0;
  GrammarExpr separator = 0;
  bool tells_texts = false;   // before_text and before_value differ
  std::string text_end = {};  // texts stand as they are, and do not contain this; empty: as `values` says
  bool is_one_line = false;   // as in ValueNotation
};

// The arguments of a function with this schema in a notation; nullopt: it cannot hold the schema.
std::optional<GrammarExpr> arguments_in_notation(GrammarBuilder& builder, std::string_view schema,
                                                 const ArgumentNotation& notation);

// Free text in which each trigger starts a text of its form.
struct TriggeredForm {
  std::string trigger;  // bytes of text; control tokens are spelled by control_token_bytes()
  GrammarExpr body = 0;
};
struct TriggerOptions {
  bool is_required = false;  // the text may not end before one of the forms
  bool is_repeated = true;   // free text may follow a form; false: the text ends after it
};
// Errors: no trigger, an empty one, or one that contains another.
Result<GrammarExpr> triggered_expression(GrammarBuilder& builder, const std::vector<TriggeredForm>& forms,
                                         const TriggerOptions& options);

// The spelling of a control token in grammars: its piece between two bytes that never occur in UTF-8.
std::string control_token_bytes(std::string_view piece);

}  // namespace outrider
