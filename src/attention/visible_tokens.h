// VisibleTokens: what a query sees of its sequence, with and without a sliding window.
#ifndef PANDO_SRC_ATTENTION_VISIBLE_TOKENS_H_
#define PANDO_SRC_ATTENTION_VISIBLE_TOKENS_H_

#include <algorithm>
#include <cstdint>

namespace pando {

// Positions [begin, end).
struct VisibleTokens {
  int64_t begin;
  int64_t end;
};

// What the query at `position` sees. A window of 0 is none.
constexpr VisibleTokens VisibleFrom(int64_t position, int64_t window) {
  return {window == 0 ? 0 : std::max<int64_t>(0, position - window + 1), position + 1};
}

// What all of `num_queries` queries from `first_position` on see together.
constexpr VisibleTokens VisibleFromAny(int64_t first_position, int64_t num_queries, int64_t window) {
  return {VisibleFrom(first_position, window).begin, first_position + num_queries};
}

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_VISIBLE_TOKENS_H_
