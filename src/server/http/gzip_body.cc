// SPDX-License-Identifier: Apache-2.0
#include "server/http/gzip_body.h"

#include <zlib.h>

#include <algorithm>

namespace outrider {
namespace {

// zlib's state, freed however a function ends.
class Inflater {
 public:
  Inflater() {
    constexpr int kWindowBits = 15, kGzip = 16;
    is_ready_ = inflateInit2(&stream_, kWindowBits + kGzip) == Z_OK;
  }
  ~Inflater() {
    if (is_ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  void take(std::string_view packed) {
    stream_.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib does not write there
    stream_.avail_in = static_cast<uInt>(packed.size());
  }
  // Appends at most `bytes` to `out` and returns zlib's result.
  int append(std::string& out, size_t bytes) {
    const size_t before = out.size();
    out.resize(before + bytes);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream_.avail_out = static_cast<uInt>(bytes);
    const int result = is_ready_ ? inflate(&stream_, Z_NO_FLUSH) : Z_MEM_ERROR;
    out.resize(out.size() - stream_.avail_out);
    return result;
  }

 private:
  z_stream stream_ = {};
  bool is_ready_ = false;
};

}  // namespace

ApiResult<std::string> unpack_gzip(std::string_view body, size_t max_bytes) {
  constexpr size_t kPiece = 64 << 10;
  Inflater inflater;
  inflater.take(body);
  std::string out;
  int result = Z_OK;
  while (result == Z_OK && out.size() <= max_bytes) {
    result = inflater.append(out, std::min(kPiece, max_bytes + 1 - out.size()));
  }
  if (out.size() > max_bytes) {
    return ApiError{
        .status = 413,
        .message = "expected a body of at most " + std::to_string(max_bytes) + " bytes when unpacked",
        .code = "body_too_large"};
  }
  if (result == Z_STREAM_END) return out;
  return ApiError{.message = "expected a whole body in gzip as Content-Encoding says, found another",
                  .code = "bad_content_encoding"};
}

}  // namespace outrider
