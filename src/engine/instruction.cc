#include "src/engine/instruction.h"

#include <algorithm>
#include <span>

#include "src/base/check.h"

namespace pando {
namespace {

// Room for a decode step of several sequences.
constexpr size_t kMessageWords = 64;

}  // namespace

void Instruction::Begin(InstructionKind kind) {
  words_.clear();
  words_.push_back(static_cast<int64_t>(kind));
}

void Instruction::AddText(std::string_view text) {
  Add(static_cast<int64_t>(text.size()));
  for (const char letter : text) Add(letter);
}

Status Instruction::Broadcast(Transport& transport) {
  if (transport.size() == 1) return Status();
  message_.resize(kMessageWords);
  constexpr size_t kInMessage = kMessageWords - 1;
  if (transport.rank() == 0) {
    message_[0] = static_cast<int64_t>(words_.size());
    std::copy_n(words_.begin(), std::min(words_.size(), kInMessage), message_.begin() + 1);
  }
  if (Status status = transport.Broadcast(0, std::as_writable_bytes(std::span(message_))); !status.ok()) return status;
  words_.resize(static_cast<size_t>(message_[0]));
  std::copy_n(message_.begin() + 1, std::min(words_.size(), kInMessage), words_.begin());
  if (words_.size() <= kInMessage) return Status();
  return transport.Broadcast(0, std::as_writable_bytes(std::span(words_).subspan(kInMessage)));
}

int64_t InstructionReader::Next() {
  PANDO_CHECK(next_ < instruction_.words_.size());
  return instruction_.words_[next_++];
}

std::string InstructionReader::NextText() {
  std::string text(static_cast<size_t>(Next()), '\0');
  for (char& letter : text) letter = static_cast<char>(Next());
  return text;
}

}  // namespace pando
