// SPDX-License-Identifier: Apache-2.0
#include "config/config_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "config/message_text.h"

namespace outrider {
namespace {

constexpr size_t kMaxTextSize = size_t{1} << 20;
constexpr size_t kDeepest = 64;

// Leaves yaml-cpp's parser from within an event; never crosses parse_config().
struct Refused {
  int line;
  std::string message;
};

// Builds the tree from the parser's events, so that nothing yaml-cpp would expand or resolve is ever built.
class TreeBuilder : public YAML::EventHandler {
 public:
  ConfigNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_plain(mark, "", anchor);
    place(mark, node_at(mark, ConfigNode::Kind::kNull));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{line_of(mark), "aliases (*name) are not allowed; write the value out"};
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_plain(mark, tag, anchor);
    const bool plain = tag == "?";
    if (!open_.empty() && open_.back().node.kind == ConfigNode::Kind::kMap && !open_.back().has_key) {
      add_key(mark, value);
      return;
    }
    const bool null = plain && (value.empty() || value == "~" || value == "null" || value == "Null");
    ConfigNode node = node_at(mark, null ? ConfigNode::Kind::kNull : ConfigNode::Kind::kScalar);
    if (!null) node.text = value;
    place(mark, std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  struct OpenNode {
    ConfigNode node;
    bool has_key = false;  // kMap: the last member waits for its value
  };

  static int line_of(const YAML::Mark& mark) { return mark.line + 1; }

  static ConfigNode node_at(const YAML::Mark& mark, ConfigNode::Kind kind) {
    ConfigNode node;
    node.kind = kind;
    node.line = line_of(mark);
    return node;
  }

  static void check_plain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      throw Refused{line_of(mark), "anchors (&name) are not allowed; write the value out"};
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{line_of(mark), fmt::format("tags are not allowed, found {}; leave it out", quote(tag))};
    }
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, ConfigNode::Kind kind) {
    check_plain(mark, tag, anchor);
    if (open_.size() >= kDeepest) {
      throw Refused{line_of(mark), fmt::format("expected at most {} levels of nesting", kDeepest)};
    }
    if (!open_.empty() && open_.back().node.kind == ConfigNode::Kind::kMap && !open_.back().has_key) {
      throw Refused{line_of(mark), "expected a plain key, found a list or map in its place"};
    }
    open_.emplace_back().node = node_at(mark, kind);
  }

  void close() {
    ConfigNode node = std::move(open_.back().node);
    open_.pop_back();
    place_node(std::move(node));
  }

  void add_key(const YAML::Mark& mark, const std::string& key) {
    OpenNode& parent = open_.back();
    const auto same = [&](const ConfigMember& member) { return member.key == key; };
    if (std::any_of(parent.node.members.begin(), parent.node.members.end(), same)) {
      throw Refused{line_of(mark), fmt::format("key {} is given twice; keep one", quote(key))};
    }
    if (parent.node.members.size() >= kMaxKeys) {
      throw Refused{line_of(mark), fmt::format("expected at most {} keys in one map", kMaxKeys)};
    }
    ConfigMember& member = parent.node.members.emplace_back();
    member.key = key;
    member.line = line_of(mark);
    parent.has_key = true;
  }

  void place(const YAML::Mark& mark, ConfigNode node) {
    if (!open_.empty() && open_.back().node.kind == ConfigNode::Kind::kMap && !open_.back().has_key) {
      throw Refused{line_of(mark), "expected a key, found nothing"};
    }
    place_node(std::move(node));
  }

  void place_node(ConfigNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.kind == ConfigNode::Kind::kMap) {
      open_.back().node.members.back().value = std::move(node);
      open_.back().has_key = false;
    } else {
      open_.back().node.items.push_back(std::move(node));
    }
  }

  static constexpr size_t kMaxKeys = 256;  // bounds the search for repeated keys

  ConfigNode root_;
  std::vector<OpenNode> open_;  // from the root to the innermost list or map
};

}  // namespace

Result<ConfigNode> parse_config(std::string_view text, std::string_view name) {
  if (text.size() > kMaxTextSize) {
    return input_error(fmt::format("{}: expected at most 1 MiB of YAML, found {} bytes", name, text.size()));
  }
  if (text.find('\0') != std::string_view::npos) {
    return input_error(fmt::format("{}: expected UTF-8 text, found a NUL byte", name));
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    parser.HandleNextDocument(builder);
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return input_error(fmt::format("{}: expected one YAML document, found a second one", name));
    }
    return builder.take();
  } catch (const Refused& refused) {
    return input_error(fmt::format("{}:{}: {}", name, refused.line, refused.message));
  } catch (const YAML::Exception& error) {
    return input_error(fmt::format("{}:{}: expected valid YAML: {}", name, error.mark.line + 1, error.msg));
  } catch (const std::exception& error) {
    return input_error(fmt::format("{}: expected valid YAML: {}", name, single_line(error.what())));
  }
}

Result<ConfigNode> read_config_file(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) {
    return io_error(fmt::format("{}: expected a YAML file, found {}", path.string(),
                                std::filesystem::exists(path, code) ? "something else" : "no such file"));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text;
  text.resize(kMaxTextSize + 1);  // one byte more than allowed, so that parse_config sees what is too large
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.is_open()) return io_error(fmt::format("{}: cannot be read", path.string()));
  text.resize(static_cast<size_t>(file.gcount()));
  return parse_config(text, path.string());
}

std::string place_in(std::string_view name, int line) {
  return line == 0 ? std::string(name) : fmt::format("{}:{}", name, line);
}

std::string_view config_kind_name(ConfigNode::Kind kind) {
  switch (kind) {
    case ConfigNode::Kind::kNull:
      return "nothing";
    case ConfigNode::Kind::kScalar:
      return "a single value";
    case ConfigNode::Kind::kList:
      return "a list";
    case ConfigNode::Kind::kMap:
      return "a map";
  }
  return "nothing";
}

}  // namespace outrider
