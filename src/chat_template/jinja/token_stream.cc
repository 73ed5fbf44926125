// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/token_stream.h"

namespace outrider::jinja {

namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kOutputBegin:
      return "'{{'";
    case TokenKind::kOutputEnd:
      return "'}}'";
    case TokenKind::kTagBegin:
      return "'{%'";
    case TokenKind::kTagEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace

Error TokenStream::unexpected(std::string_view expected) const {
  return fail("expected " + std::string(expected) + ", found " + describe(current()));
}

Status TokenStream::expect_operator(std::string_view op) {
  if (skip_operator(op)) return {};
  return unexpected("'" + std::string(op) + "'");
}

Status TokenStream::expect_name(std::string_view name) {
  if (skip_name(name)) return {};
  return unexpected("'" + std::string(name) + "'");
}

Result<std::string> TokenStream::expect_any_name(std::string_view what) {
  if (at(TokenKind::kName)) return take().text;
  return unexpected(what);
}

Status TokenStream::expect_tag_end() {
  if (!at(TokenKind::kTagEnd)) return unexpected("'%}'");
  take();
  return {};
}

}  // namespace outrider::jinja
