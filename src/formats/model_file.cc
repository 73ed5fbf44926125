// SPDX-License-Identifier: Apache-2.0
#include "formats/model_file.h"

#include "formats/json_object.h"

namespace outrider {

void ModelFile::drop_pages(const TensorView& tensor) const {
  const std::span bytes = tensor.source != nullptr
                              ? tensor.source->stored(tensor.first_row, tensor.rows())
                              : std::span(tensor.data, static_cast<size_t>(tensor.bytes()));
  for (const MappedFile* file : files) {
    const std::span mapped = file->bytes();
    if (bytes.data() >= mapped.data() && bytes.data() + bytes.size() <= mapped.data() + mapped.size()) {
      drop_mapped_pages(bytes);
    }
  }
}

std::optional<std::string> ModelFile::contents_name() const {
  if (format == "random") return path.string();
  std::vector<FileStamp> stamps;
  for (const MappedFile* file : files) stamps.push_back(file->stamp());
  // The text of config.json that was read is in memory; the file may have changed since.
  std::string name = document == nullptr ? "" : simdjson::minify(document->root().fields()) + "\n";
  for (const FileStamp& stamp : stamps) {
    if (!stamp.is_final) return std::nullopt;
    name += "file " + std::to_string(stamp.bytes) + " " + std::to_string(stamp.modified) + " " +
            std::to_string(stamp.changed) + "\n";
  }
  return name;
}

Status ModelFile::check_files() const {
  for (const MappedFile* file : files) OUTRIDER_RETURN_IF_ERROR(file->check());
  return {};
}

}  // namespace outrider
