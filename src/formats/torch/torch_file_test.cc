// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/torch_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "formats/json_file.h"
#include "formats/json_object.h"
#include "formats/test_outcome.h"
#include "formats/torch/state_dict.h"
#include "formats/torch/test_torch.h"
#include "platform/mapped_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

const fs::path kTorchData = OUTRIDER_SOURCE_DIR "/tests/data/torch";

Result<StoredTensors> parse_torch(const std::string& bytes) {
  return parse_torch_file(bytes_of(bytes), "x.bin");
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<int>(byte));
  return text;
}

TEST(TorchFile, ReadsEveryTypeAsTorchDoes) {
  const auto expected = JsonFile::read(kTorchData / "types.json");
  const auto file = MappedFile::open(kTorchData / "types.bin");
  ASSERT_TRUE(expected.ok() && file.ok());
  const auto tensors = parse_torch_file(file->bytes(), "types.bin");
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  EXPECT_EQ(tensors->size(), expected->root().fields().size());
  for (const auto& [name, value] : expected->root().fields()) {
    SCOPED_TRACE(name);
    const auto found = tensors->find(name);
    ASSERT_NE(found, tensors->end());
    const StoredTensor& tensor = found->second;
    EXPECT_EQ(tensor.dtype_name, std::string_view(value.at(0)));
    Shape shape;
    for (const int64_t dimension : value.at(1).get_array()) shape.push_back(dimension);
    EXPECT_EQ(tensor.shape, shape);
    EXPECT_EQ(hexadecimal(tensor.data), std::string_view(value.at(2)));
  }
}

TEST(TorchFile, OtherFormatsAreRefusedByName) {
  const auto parse_file = [](const char* name) {
    const auto file = MappedFile::open(kTorchData / name);
    return parse_torch_file(file->bytes(), name);
  };
  expect_refused(parse_file("legacy.bin"), "the format before PyTorch 1.6 is not supported; write it anew");
  expect_refused(parse_file("strided.bin"), "tensor 'a' has strides; save it again as tensor.contiguous()");
  expect_refused(parse_torch(""), "expected a checkpoint of torch.save(), found another file");
  expect_refused(parse_torch("\x80\x02}."), "found another file");
  expect_refused(parse_torch(zip_of({{"m/code.py", ""}})), "a zip archive without data.pkl");
  expect_refused(parse_torch(torch_file_of(pickled_state({}), "big")), "its numbers are 'big'-endian");
}

TEST(TorchFile, TensorsLieWithinTheirStorages) {
  const auto refused = [](const TestTensor& tensor, std::string_view part) {
    expect_refused(parse_torch(torch_file_of(pickled_state(tensor))), part);
  };
  const auto tuple = [](int32_t a, int32_t b) {
    return pickled_tuple({pickled_number(a), pickled_number(b)});
  };
  ASSERT_TRUE(parse_torch(torch_file_of(pickled_state({}))).ok());
  const std::string great = "\x8a\x08" + little_endian(int64_t{1} << 62);
  refused({.offset = pickled_number(1)}, "lies beyond the end of its storage");
  refused({.offset = pickled_number(7)}, "lies beyond the end of its storage");
  refused({.offset = pickled_number(-1)}, "negative offset");
  refused({.offset = great}, "lies beyond the end of its storage");
  refused({.shape = tuple(3, 3)}, "lies beyond the end of its storage");
  refused({.shape = pickled_tuple({great, great})}, "lies beyond the end of its storage");
  refused({.shape = tuple(-2, 3)}, "no whole number up to 2^62");
  refused({.shape = pickled_tuple({"N", "N"})}, "no whole number up to 2^62");
  refused({.strides = tuple(0, 1)}, "has strides");
  refused({.strides = tuple(1000000, 1)}, "has strides");
  refused({.strides = tuple(-3, 1)}, "no whole number up to 2^62");
  refused({.strides = pickled_tuple({pickled_number(1)})}, "a stride for every dimension");
  refused({.shape = "N"}, "at most 16 dimensions");
  refused({.storage = pickled_storage("FloatStorage", "1", 6)}, "storage '1', which the file does not have");
  refused({.storage = pickled_storage("FloatStorage", "../data.pkl", 6)}, "which the file does not have");
  refused({.storage = pickled_storage("FloatStorage", "0", 7)},
          "storage '0' must have 7 numbers of type F32");
  refused({.storage = pickled_storage("DoubleStorage", "0", 6)}, "must have 6 numbers of type F64");
  refused({.storage = pickled_storage("FloatStorage", "0", -1)}, "storage of negative size");
}

TEST(TorchFile, OneNameForTwoTensorsIsRefused) {
  const std::string tensor = pickled_text("a") + pickled_tensor({});
  expect_refused(parse_torch(torch_file_of(kPickleStart + "}(" + tensor + tensor + kPickleStop)),
                 "tensor 'a' appears twice");
}

Result<std::vector<PickledTensor>> read_pickle(const std::string& pickle) {
  return read_state_dict(bytes_of(pickle), "x.bin");
}

TEST(StateDict, NothingOutsideTheListIsAllowed) {
  const std::string arguments = pickled_tuple({pickled_text("echo")}) + "R.";
  for (const std::string name : {"os\nsystem", "posix\nsystem", "builtins\neval", "builtins\nexec",
                                 "torch\nload", "torch._utils\n_rebuild_tensor_v2x", "torch\nFloatStorage.x",
                                 "collections\nOrderedDict.update", "__builtin__\nset", "\n"}) {
    SCOPED_TRACE(name);
    expect_refused(read_pickle(kPickleStart + "c" + name + "\n" + arguments), "which is not allowed");
  }
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (std::string_view("N\x88\x89KMJ\x8aGXc)]}hj(t\x85\x86\x87"
                         "aesuQRbqr.\x80")
            .find(static_cast<char>(opcode)) != std::string_view::npos)
      continue;
    expect_refused(read_pickle(kPickleStart + static_cast<char>(opcode)),
                   "opcode " + std::to_string(opcode) + " is not allowed");
  }
}

TEST(StateDict, MalformedProgramsAreRefused) {
  const std::string tensor_type = "ctorch._utils\n_rebuild_tensor_v2\n";
  for (const std::string program : {"}",
                                    "",
                                    "t.",
                                    "(t",
                                    "Q.",
                                    "NQ.",
                                    "R.",
                                    "NNR.",
                                    "N)R.",
                                    "a.",
                                    "]a.",
                                    "NNa.",
                                    "}(N\x75.",
                                    "s.",
                                    "NNNs.",
                                    "u.",
                                    "b.",
                                    "NNb.",
                                    "h\x05.",
                                    "q\x01.",
                                    "(\x85.",
                                    "X\xff\xff\xff\xff.",
                                    "J\x01",
                                    "\x8a\x04\x01",
                                    "cos",
                                    "ccollections\nOrderedDict\nN\x85R.",
                                    "ctorch._utils\n_rebuild_parameter\n)R.",
                                    "(N(0t",
                                    "]}\x86Q."}) {
    SCOPED_TRACE(quote(program));
    expect_refused_or_valid(read_pickle(kPickleStart + program));
    EXPECT_FALSE(read_pickle(kPickleStart + program).ok());
  }
  expect_refused(read_pickle("}."), "no pickle of protocol 2");
  expect_refused(read_pickle("\x80\x04}."), "has protocol 4, expected 2");
  expect_refused(read_pickle(kPickleStart + "}."), "expected a dictionary of tensors");
  expect_refused(read_pickle(kPickleStart + "}(" + pickled_text("a") + tensor_type + ")R" + kPickleStop),
                 "damaged");
  expect_refused(read_pickle(kPickleStart + "}(N" + pickled_tensor({}) + kPickleStop), "is no string");
  expect_refused(read_pickle(kPickleStart + "\x8a\x09" + std::string(9, '\1') + "."), "more than 64 bits");
}

// Programs with values that would contain one another without end, or grow much faster than the program.
TEST(StateDict, MemoryIsLinearInTheProgram) {
  expect_refused(read_pickle(kPickleStart + std::string("}q\0h\0h\0s.", 9)),
                 "expected a dictionary of tensors");
  std::string doubling = kPickleStart + ")";
  for (int i = 0; i < 100000; ++i) doubling += std::string("q\0h\0\x86", 5);
  expect_refused(read_pickle(doubling + "."), "expected a dictionary of tensors");
  expect_refused(read_pickle(kPickleStart + std::string(3 << 20, ']') + "."), "more than 2^19 values");
  expect_refused(read_pickle(kPickleStart + std::string(3 << 20, '(') + "."), "more than 2^19 marks");
  expect_refused(read_pickle(kPickleStart + "Nr\xff\xff\xff\xff."), "remembers more than 2^19 values");
  expect_refused(read_pickle(kPickleStart + std::string(33 << 20, 'N')), "larger than the limit of 32 MiB");
}

TEST(StateDict, SurvivesEveryCutAndChange) {
  const std::string file = torch_file_of(pickled_state({}));
  for (size_t size = 0; size < file.size(); ++size)
    expect_refused_or_valid(parse_torch(file.substr(0, size)));
  for (size_t i = 0; i < file.size(); ++i) {
    for (const int change : {0x01, 0x20, 0x80, 0xFF}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ change);
      expect_refused_or_valid(parse_torch(changed));
    }
  }
}

}  // namespace
}  // namespace outrider
