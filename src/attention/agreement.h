// Agree: one answer for all ranks to a question that each could answer differently.
#ifndef PANDO_SRC_ATTENTION_AGREEMENT_H_
#define PANDO_SRC_ATTENTION_AGREEMENT_H_

#include "pando/status.h"
#include "src/transport/transport.h"

namespace pando {

// OK if `mine` is OK on every rank; otherwise, on every rank, what went wrong on the lowest rank where something did,
// with that rank named on the others. All ranks call it. Costs one hop.
Status Agree(Transport& transport, const Status& mine);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_AGREEMENT_H_
