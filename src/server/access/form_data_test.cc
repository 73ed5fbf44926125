// SPDX-License-Identifier: Apache-2.0
#include "server/access/form_data.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

// As curl and httpx write it.
const std::string kForm =
    "--sep\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
    "--sep\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a;\\\"b.jsonl\"\r\n"
    "Content-Type: application/octet-stream\r\n\r\n{\"a\": \"--sep\"}\r\n\r\n--sep--\r\n";

TEST(FormData, ReadsFieldsAndFiles) {
  const auto fields = read_form(kForm, "sep", 4);
  ASSERT_TRUE(fields);
  ASSERT_EQ(fields->size(), 2u);
  EXPECT_EQ((*fields)[0].name, "purpose");
  EXPECT_FALSE((*fields)[0].file_name);
  EXPECT_EQ((*fields)[0].content, "batch");
  EXPECT_EQ((*fields)[1].name, "file");
  EXPECT_EQ((*fields)[1].file_name, "a;\"b.jsonl");
  EXPECT_EQ((*fields)[1].content, "{\"a\": \"--sep\"}\r\n");
}

TEST(FormData, ReadsEmptyContentsAndBareNames) {
  const auto fields = read_form(
      "--s  \r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION: form-data; filename=; "
      "name=x\r\n\r\n\r\n--s--",
      "s", 1);
  ASSERT_TRUE(fields);
  ASSERT_EQ(fields->size(), 1u);
  EXPECT_EQ((*fields)[0].name, "x");
  EXPECT_EQ((*fields)[0].content, "");
}

TEST(FormData, RefusesWhatIsCutOff) {
  const size_t end = kForm.rfind("--");  // the last two bytes but for the end of the line
  for (size_t size = 0; size < end + 2; ++size)
    EXPECT_FALSE(read_form(kForm.substr(0, size), "sep", 4)) << size;
}

TEST(FormData, RefusesMalformedForms) {
  for (const std::string body :
       {"", "x", "--sep", "--sepx\r\n", "--sep\r\n\r\nno header\r\n--sep--",
        "--sep\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--sep--",
        "--sep\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\nother\r\n--sep--",
        "--sep\r\nContent-Disposition: form-data; name=\"a\r\n\r\nopen quote\r\n--sep--",
        "--sep\r\nno colon\r\n\r\ntext\r\n--sep--"}) {
    EXPECT_FALSE(read_form(body, "sep", 4)) << body;
  }
  EXPECT_FALSE(read_form(kForm, "sep", 1));  // too many fields
  const std::string long_header = "--sep\r\nX: " + std::string(9000, 'x') +
                                  "\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--sep--";
  EXPECT_FALSE(read_form(long_header, "sep", 4));
}

TEST(FormData, FindsTheBoundary) {
  EXPECT_EQ(form_boundary("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(form_boundary("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\""), "a b");
  for (const std::string type : {"application/json", "multipart/form-data", "multipart/form-data; boundary=",
                                 "multipart/form-data; boundary=\"open", "multipart/mixed; boundary=a"}) {
    EXPECT_FALSE(form_boundary(type)) << type;
  }
  EXPECT_FALSE(form_boundary("multipart/form-data; boundary=" + std::string(71, 'x')));
}

}  // namespace
}  // namespace outrider
