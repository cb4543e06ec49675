// Writes a model's twin: the same file with its weights as float32, so that no activation is rounded to meet them.
//
//   float_twin MODEL TARGET
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/gguf/gguf_file.h"
#include "src/gguf/testing/gguf_writer.h"
#include "src/kernels/weight_type.h"

namespace pando {
namespace {

using test_support::GgufWriter;

template <typename T>
std::vector<T> As(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

// The kinds of metadata that models have.
Status CopyValue(std::string_view key, const GgufValue& value, GgufWriter& writer) {
  switch (value.is_array() ? value.element_type() : value.type()) {
    case GgufValueType::kString:
      if (value.is_array()) {
        const std::vector<std::string_view> strings = *value.AsStrings();
        writer.Add(key, std::vector<std::string>(strings.begin(), strings.end()));
      } else {
        writer.Add(key, std::string(*value.AsString()));
      }
      return Status();
    case GgufValueType::kInt32:
      value.is_array() ? writer.Add(key, As<int32_t>(*value.AsInts()))
                       : writer.Add(key, static_cast<int32_t>(*value.AsInt()));
      return Status();
    case GgufValueType::kUint32:
      value.is_array() ? writer.Add(key, As<uint32_t>(*value.AsInts()))
                       : writer.Add(key, static_cast<uint32_t>(*value.AsUint()));
      return Status();
    case GgufValueType::kFloat32:
      value.is_array() ? writer.Add(key, *value.AsFloats()) : writer.Add(key, static_cast<float>(*value.AsFloat()));
      return Status();
    case GgufValueType::kBool:
      if (value.is_array()) break;
      writer.Add(key, *value.AsBool());
      return Status();
    default:
      break;
  }
  return InvalidArgument("{}: float_twin does not copy metadata of type {}", key, value.TypeName());
}

Status CopyTensor(const GgufTensor& tensor, GgufWriter& writer) {
  std::string type(InfoOf(tensor.type).name);
  for (char& letter : type) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const Result<WeightType> weight_type = ParseWeightType(type);
  if (!weight_type.ok()) return weight_type.status();
  const WeightMatrix matrix = {*weight_type, tensor.rows(), tensor.columns(), tensor.data.data()};
  std::vector<float> values(matrix.rows * matrix.columns);
  for (size_t row = 0; row < matrix.rows; ++row) DequantizeRow(matrix, row, values.data() + row * matrix.columns);
  writer.AddTensor(tensor.name, tensor.shape, values);
  return Status();
}

Status WriteTwin(const std::string& model, const std::string& target) {
  const Result<GgufFile> file = GgufFile::Open(model);
  if (!file.ok()) return file.status();
  GgufWriter writer;
  for (const GgufKeyValue& entry : file->metadata()) {
    if (Status status = CopyValue(entry.key, entry.value, writer); !status.ok()) return status;
  }
  for (const GgufTensor& tensor : file->tensors()) {
    if (Status status = CopyTensor(tensor, writer); !status.ok()) return status;
  }
  writer.Write(target);
  return Status();
}

}  // namespace
}  // namespace pando

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: float_twin MODEL TARGET\n", stderr);
    return 2;
  }
  const pando::Status status = pando::WriteTwin(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "float_twin: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
