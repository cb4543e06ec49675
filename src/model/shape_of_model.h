// The shape of a loaded model, as the planner sees it.
#ifndef PANDO_SRC_MODEL_SHAPE_OF_MODEL_H_
#define PANDO_SRC_MODEL_SHAPE_OF_MODEL_H_

#include "src/model/model.h"
#include "src/planning/model_shape.h"

namespace pando {

ModelShape ModelShapeOf(const Model& model);

}  // namespace pando

#endif  // PANDO_SRC_MODEL_SHAPE_OF_MODEL_H_
