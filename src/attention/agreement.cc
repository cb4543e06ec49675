#include "src/attention/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace pando {
namespace {

// As it travels: long sentences lose their end.
struct Answer {
  StatusCode code = StatusCode::kOk;
  std::array<char, 500> message{};
};

}  // namespace

Status Agree(Transport& transport, const Status& mine) {
  Answer answer{mine.code(), {}};
  std::memcpy(answer.message.data(), mine.message().data(), std::min(mine.message().size(), answer.message.size() - 1));
  std::vector<Answer> answers(static_cast<size_t>(transport.size()));
  if (Status status =
          transport.AllGather(std::as_bytes(std::span(&answer, 1)), std::as_writable_bytes(std::span(answers)));
      !status.ok()) {
    return status;
  }
  if (!mine.ok()) return mine;
  const auto bad =
      std::find_if(answers.begin(), answers.end(), [](const Answer& a) { return a.code != StatusCode::kOk; });
  if (bad == answers.end()) return Status();
  return Status(bad->code, fmt::format("rank {}: {}", bad - answers.begin(), bad->message.data()));
}

}  // namespace pando
