// Agree: one answer for all ranks to a question that each could answer differently. AgreeOnOptions: whether they were
// asked the same question.
#ifndef PANDO_SRC_RANKS_AGREEMENT_H_
#define PANDO_SRC_RANKS_AGREEMENT_H_

#include <string_view>

#include "pando/status.h"
#include "src/transport/transport.h"

namespace pando {

// OK if `mine` is OK on every rank; otherwise, on every rank, what went wrong on the lowest rank where something did,
// with that rank named on the others. All ranks call it. Costs one hop.
Status Agree(Transport& transport, const Status& mine);

// OK if `mine` is the same text (its first 499 bytes) on every rank; otherwise, on every rank, which rank was started
// with what. Messages whose sizes follow from options that differ would end in the middle of MPI, which some of its
// transports do not survive. All ranks call it. Costs one hop.
Status AgreeOnOptions(Transport& transport, std::string_view mine);

}  // namespace pando

#endif  // PANDO_SRC_RANKS_AGREEMENT_H_
