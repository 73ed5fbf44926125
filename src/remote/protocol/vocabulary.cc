// SPDX-License-Identifier: Apache-2.0
#include "remote/protocol/vocabulary.h"

#include <openssl/evp.h>

#include <string>
#include <string_view>

#include "base/check.h"
#include "remote/protocol/wire.h"

namespace outrider {

VocabularyFingerprint fingerprint_of(const Tokenizer& tokenizer) {
  WireWriter wire;
  wire.number(tokenizer.vocab_size());
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const bool is_control = tokenizer.is_control(id);
    const std::string_view text = is_control ? tokenizer.token_piece(id) : tokenizer.token_bytes(id);
    wire.number(static_cast<uint8_t>(is_control));
    wire.number(text.size());
    wire.bytes({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  const std::string described = wire.take();
  VocabularyFingerprint fingerprint = {};
  const int done =
      EVP_Digest(described.data(), described.size(), fingerprint.data(), nullptr, EVP_sha256(), nullptr);
  OUTRIDER_CHECK(done == 1);
  return fingerprint;
}

}  // namespace outrider
