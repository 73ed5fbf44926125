// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_json_pipeline.h"

#include <cctype>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer_pieces.h"

namespace outrider {
namespace {

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Calls `visit` with `step` and its type, or with each step of a Sequence in turn; `list` names its member.
Status visit_steps(const JsonField& step, std::string_view list,
                   const std::function<Status(const JsonField&, std::string_view)>& visit) {
  OUTRIDER_TRY(const JsonField type_field, step.at("type"));
  OUTRIDER_TRY(const std::string_view type, type_field.string());
  if (type != "Sequence") return visit(step, type);
  OUTRIDER_TRY(const JsonField steps, step.at(list));
  return steps.each([&](const JsonField& inner) { return visit_steps(inner, list, visit); });
}

class PipelineReader {
 public:
  PipelineReader(const JsonField& root, TokenizerSpec& spec) : root_(root), spec_(spec) {}

  Status run() {
    spec_.kind = TokenizerKind::kSentencePiece;  // changed where a ByteLevel step is found
    const auto read = [&](std::string_view section, std::string_view list, auto reader) -> Status {
      const auto field = root_.find(section);
      if (!field) return {};
      return visit_steps(*field, list, [&](const JsonField& step, std::string_view type) {
        return (this->*reader)(step, type);
      });
    };
    OUTRIDER_RETURN_IF_ERROR(read("normalizer", "normalizers", &PipelineReader::read_normalizer));
    OUTRIDER_RETURN_IF_ERROR(read("pre_tokenizer", "pretokenizers", &PipelineReader::read_pre_tokenizer));
    OUTRIDER_RETURN_IF_ERROR(read("post_processor", "processors", &PipelineReader::read_post_processor));
    OUTRIDER_RETURN_IF_ERROR(read("decoder", "decoders", &PipelineReader::read_decoder));
    return choose_space_rule();
  }

 private:
  bool byte_level() const { return spec_.kind == TokenizerKind::kByteLevelBpe; }

  Status read_normalizer(const JsonField& step, std::string_view type) {
    constexpr std::pair<std::string_view, NormalizerKind> kWithoutOptions[] = {
        {"NFC", NormalizerKind::kNfc},
        {"NFD", NormalizerKind::kNfd},
        {"NFKC", NormalizerKind::kNfkc},
        {"NFKD", NormalizerKind::kNfkd},
        {"Lowercase", NormalizerKind::kLowercase},
    };
    for (const auto& [name, kind] : kWithoutOptions) {
      if (type == name) return add_normalizer(step, {.kind = kind});
    }
    if (type == "Prepend") return read_prepend(step);
    if (type == "Replace") return read_replace(step);
    if (type == "Strip") {
      OUTRIDER_TRY(const bool left, step.boolean_at("strip_left", true));
      OUTRIDER_TRY(const bool right, step.boolean_at("strip_right", true));
      return add_normalizer(step, {.kind = NormalizerKind::kTrim, .trims_left = left, .trims_right = right});
    }
    return step.unsupported(
        "normalizer", type,
        {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Prepend", "Replace", "Strip", "Sequence"});
  }

  // The steps of the spec come before spaces become U+2581. NFC and NFD do the same on either side of it.
  Status add_normalizer(const JsonField& step, const NormalizerStep& normalizer) {
    const bool commutes = normalizer.kind == NormalizerKind::kNfc || normalizer.kind == NormalizerKind::kNfd;
    if ((prepends_ || replaces_spaces_) && !commutes) {
      return step.fail("a step after the one that writes spaces as U+2581 is not supported");
    }
    spec_.normalizer.push_back(normalizer);
    return {};
  }

  Status read_prepend(const JsonField& step) {
    OUTRIDER_TRY(const std::string_view prefix, step.string_at("prepend", ""));
    if (prefix != kSpaceMark) {
      return add_normalizer(step, {.kind = NormalizerKind::kPrepend, .content = std::string(prefix)});
    }
    prepends_ = true;
    return {};
  }

  Status read_replace(const JsonField& step) {
    OUTRIDER_TRY(const JsonField pattern, step.at("pattern"));
    OUTRIDER_TRY(const std::string expression, read_pattern(pattern));
    OUTRIDER_TRY(const std::string_view content, step.string_at("content", ""));
    if (expression == " " && content == kSpaceMark) {
      replaces_spaces_ = true;
      return {};
    }
    return add_normalizer(
        step, {.kind = NormalizerKind::kReplace, .pattern = expression, .content = std::string(content)});
  }

  // The regular expression of a {"Regex": ...} or a {"String": ...}.
  static Result<std::string> read_pattern(const JsonField& pattern) {
    if (const auto regex = pattern.find("Regex")) {
      OUTRIDER_TRY(const std::string_view expression, regex->string());
      return std::string(expression);
    }
    OUTRIDER_TRY(const JsonField literal, pattern.at("String"));
    OUTRIDER_TRY(const std::string_view text, literal.string());
    if (text.empty()) return literal.fail("expected a string to search for, found an empty one");
    std::string escaped;
    for (const char byte : text) {
      if (std::ispunct(static_cast<unsigned char>(byte)) != 0) escaped += '\\';
      escaped += byte;
    }
    return escaped;
  }

  Status read_pre_tokenizer(const JsonField& step, std::string_view type) {
    if (type == "ByteLevel") return read_byte_level(step);
    if (type == "Metaspace") return read_metaspace(step);
    if (type == "Split") return read_split(step);
    if (type == "Digits") {
      OUTRIDER_TRY(const bool individual, step.boolean_at("individual_digits", false));
      add_rule("\\p{N}", individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
      return {};
    }
    if (type == "Punctuation") {
      OUTRIDER_TRY(const SplitBehavior behavior, read_behavior(step));
      add_rule("[\\p{P}!-/:-@\\[-`{-~]", behavior);
      return {};
    }
    return step.unsupported("pre-tokenizer", type,
                            {"ByteLevel", "Metaspace", "Split", "Digits", "Punctuation", "Sequence"});
  }

  void add_rule(std::string_view pattern, SplitBehavior behavior, bool invert = false) {
    spec_.split_patterns.push_back({std::string(pattern), behavior, invert, byte_level()});
  }

  Status read_byte_level(const JsonField& step) {
    if (byte_level()) return input_error(step.path() + ": a second ByteLevel step is not supported");
    OUTRIDER_TRY(const bool add_prefix_space, step.boolean_at("add_prefix_space", true));
    OUTRIDER_TRY(const bool use_regex, step.boolean_at("use_regex", true));
    if (add_prefix_space && !spec_.split_patterns.empty()) {
      return input_error(step.path() + ": add_prefix_space after another pre-tokenizer is not supported");
    }
    if (use_regex) add_rule(kGpt2Pattern, SplitBehavior::kIsolated);
    spec_.add_space_prefix = add_prefix_space;
    spec_.kind = TokenizerKind::kByteLevelBpe;
    return {};
  }

  Status read_metaspace(const JsonField& step) {
    if (has_metaspace_ || !spec_.split_patterns.empty()) {
      return input_error(step.path() + ": Metaspace after another pre-tokenizer is not supported");
    }
    OUTRIDER_TRY(const std::string_view replacement, step.string_at("replacement", kSpaceMark));
    if (replacement != kSpaceMark) return step.unsupported("a replacement of", replacement, {kSpaceMark});
    OUTRIDER_TRY(const bool add_prefix_space, step.boolean_at("add_prefix_space", true));
    OUTRIDER_TRY(const std::string_view scheme,
                 step.string_at("prepend_scheme", add_prefix_space ? "always" : "never"));
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      return step.unsupported("a prepend_scheme of", scheme, {"always", "first", "never"});
    }
    OUTRIDER_TRY(const bool split, step.boolean_at("split", true));
    has_metaspace_ = true;
    spec_.space_rule = scheme == "first" ? SpaceRule::kMetaspaceFirst : SpaceRule::kMetaspaceAlways;
    spec_.add_space_prefix = scheme != "never";
    if (split) add_rule(kSpaceMark, SplitBehavior::kMergedWithNext);
    return {};
  }

  static Result<SplitBehavior> read_behavior(const JsonField& step) {
    OUTRIDER_TRY(const std::string_view name, step.string_at("behavior", "Isolated"));
    if (name == "Isolated") return SplitBehavior::kIsolated;
    if (name == "Removed") return SplitBehavior::kRemoved;
    if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
    if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
    if (name == "Contiguous") return SplitBehavior::kContiguous;
    return step.unsupported("the behavior", name,
                            {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"});
  }

  Status read_split(const JsonField& step) {
    OUTRIDER_TRY(const JsonField pattern, step.at("pattern"));
    OUTRIDER_TRY(const SplitBehavior behavior, read_behavior(step));
    OUTRIDER_TRY(const bool invert, step.boolean_at("invert", false));
    OUTRIDER_TRY(const std::string expression, read_pattern(pattern));
    add_rule(expression, behavior, invert);
    return {};
  }

  Status read_post_processor(const JsonField& step, std::string_view type) {
    if (type == "ByteLevel") return {};  // trims offsets, which are not used here
    if (type == "RobertaProcessing" || type == "BertProcessing") {
      OUTRIDER_RETURN_IF_ERROR(append_pair(step, "cls", spec_.prefix));
      return append_pair(step, "sep", spec_.suffix);
    }
    if (type != "TemplateProcessing") {
      return step.unsupported(
          "post-processor", type,
          {"ByteLevel", "TemplateProcessing", "RobertaProcessing", "BertProcessing", "Sequence"});
    }
    if (has_template_) return input_error(step.path() + ": a second TemplateProcessing is not supported");
    has_template_ = true;
    OUTRIDER_TRY(const JsonField single, step.at("single"));
    bool after_text = false;
    OUTRIDER_RETURN_IF_ERROR(single.each([&](const JsonField& item) -> Status {
      if (!item.find("Sequence")) return append_special(step, item, after_text ? spec_.suffix : spec_.prefix);
      if (after_text) return item.fail("a template with the text in it twice is not supported");
      after_text = true;
      return {};
    }));
    if (!after_text)
      return input_error(single.path() + ": expected a template with the text (Sequence) in it");
    return {};
  }

  static Status append_id(const JsonField& id, std::vector<TokenId>& tokens) {
    OUTRIDER_TRY(const int64_t value, id.integer());
    if (value < 0 || value > INT32_MAX) return id.expected("a token id below 2^31");
    tokens.push_back(static_cast<TokenId>(value));
    return {};
  }

  // Appends the id of a member ["</s>", 2].
  static Status append_pair(const JsonField& step, std::string_view name, std::vector<TokenId>& tokens) {
    OUTRIDER_TRY(const JsonField pair, step.at(name));
    size_t index = 0;
    OUTRIDER_RETURN_IF_ERROR(pair.each(
        [&](const JsonField& item) -> Status { return index++ == 1 ? append_id(item, tokens) : Status(); }));
    return index == 2 ? Status() : pair.expected("a token and its id");
  }

  // Appends the ids of a {"SpecialToken": {"id": name}} of a template.
  static Status append_special(const JsonField& step, const JsonField& item, std::vector<TokenId>& tokens) {
    OUTRIDER_TRY(const JsonField special, item.at("SpecialToken"));
    OUTRIDER_TRY(const JsonField name_field, special.at("id"));
    OUTRIDER_TRY(const std::string_view name, name_field.string());
    OUTRIDER_TRY(const JsonField all, step.at("special_tokens"));
    OUTRIDER_TRY(const JsonField definition, all.at(name));
    OUTRIDER_TRY(const JsonField ids, definition.at("ids"));
    return ids.each([&](const JsonField& id) { return append_id(id, tokens); });
  }

  // The kind of vocabulary determines how tokens are decoded; this only refuses files that need another
  // decoder.
  Status read_decoder(const JsonField& step, std::string_view type) {
    for (const std::string_view known :
         {"ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}) {
      if (type == known) return {};
    }
    return step.unsupported(
        "decoder", type, {"ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip", "Sequence"});
  }

  // Chooses the rule for marking spaces once all steps are known.
  Status choose_space_rule() {
    const bool in_normalizer = prepends_ || replaces_spaces_;
    if (byte_level() && (in_normalizer || has_metaspace_)) {
      return input_error("normalizer: ByteLevel together with U+2581 for spaces is not supported");
    }
    if (byte_level()) return {};
    if (in_normalizer && has_metaspace_) {
      return input_error(
          "pre_tokenizer: Metaspace together with a normalizer that replaces spaces is not supported");
    }
    if (!in_normalizer && !has_metaspace_) {
      return input_error(
          "pre_tokenizer: expected ByteLevel, Metaspace, or a normalizer that replaces spaces by U+2581; "
          "found none");
    }
    if (prepends_ && !replaces_spaces_) {
      return input_error("normalizer: Prepend without Replace of spaces is not supported");
    }
    if (in_normalizer) {
      spec_.space_rule = SpaceRule::kNormalizer;
      spec_.add_space_prefix = prepends_;
    }
    return {};
  }

  const JsonField& root_;
  TokenizerSpec& spec_;
  bool prepends_ = false;
  bool replaces_spaces_ = false;
  bool has_metaspace_ = false;
  bool has_template_ = false;
};

}  // namespace

Status read_pipeline(const JsonField& root, TokenizerSpec& spec) { return PipelineReader(root, spec).run(); }

}  // namespace outrider
