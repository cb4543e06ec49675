#include "src/cli/commands/plan_model.h"

#include <memory>

#include "src/base/errors.h"
#include "src/kernels/weight_type.h"
#include "src/model/model.h"
#include "src/model/shape_of_model.h"

namespace pando::cli {

Result<ModelShape> FindPlanModel(const std::string& name_or_path, const std::string& weight_type) {
  const bool is_path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".gguf");
  if (!is_path) {
    const Result<WeightType> type = weight_type.empty() ? WeightType::kF16 : ParseWeightType(weight_type);
    if (!type.ok()) return InvalidArgument("--weight-type: {}", type.status().message());
    Result<ModelShape> shape = FindModelShape(name_or_path, *type);
    if (shape.ok()) return shape;
    return InvalidArgument("{}, or the path of a .gguf file", shape.status().message());
  }
  if (!weight_type.empty()) {
    return InvalidArgument("--weight-type is {}: it is for models that are known by name, a file says it itself",
                           weight_type);
  }
  const Result<std::shared_ptr<const Model>> model = Model::Load(name_or_path, {});
  if (!model.ok()) return model.status();
  return ModelShapeOf(**model);
}

}  // namespace pando::cli
