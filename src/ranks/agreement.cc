#include "src/ranks/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "src/base/errors.h"

namespace pando {
namespace {

// As it travels: long texts lose their end.
using Text = std::array<char, 500>;

Text TextOf(std::string_view from) {
  Text text{};
  std::copy_n(from.data(), std::min(from.size(), text.size() - 1), text.data());
  return text;
}

// Each begins with a '-', but for what may come before the first.
std::vector<std::string_view> SplitOptions(std::string_view text) {
  std::vector<std::string_view> options;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(" -", begin), text.size());
    options.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return options;
}

// The options of `text` that `other` has not, or not so; all of them where that would be none.
std::string OptionsBeside(std::string_view other, std::string_view text) {
  const std::vector<std::string_view> others = SplitOptions(other);
  std::vector<std::string_view> options = SplitOptions(text);
  std::erase_if(options, [&](std::string_view option) { return std::ranges::count(others, option) > 0; });
  return options.empty() ? std::string(text) : fmt::format("{}", fmt::join(options, " "));
}

struct Answer {
  StatusCode code = StatusCode::kOk;
  Text message{};
};

}  // namespace

Status Agree(Transport& transport, const Status& mine) {
  const Answer answer{mine.code(), TextOf(mine.message())};
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

Status AgreeOnOptions(Transport& transport, std::string_view mine) {
  const Text text = TextOf(mine);
  std::vector<Text> texts(static_cast<size_t>(transport.size()));
  PANDO_RETURN_IF_ERROR(transport.AllGather(std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(texts))));
  const auto other = std::ranges::find_if(texts, [&](const Text& each) { return each != texts.front(); });
  if (other == texts.end()) return Status();
  return InvalidArgument("rank {} was started with {} and rank 0 with {}: start all ranks with the same options",
                         other - texts.begin(), OptionsBeside(texts.front().data(), other->data()),
                         OptionsBeside(other->data(), texts.front().data()));
}

}  // namespace pando
