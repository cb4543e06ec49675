#include "src/tokenizer/utf8.h"

#include <array>

#include "src/base/check.h"

namespace pando {
namespace {

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// By the standard: how the bytes from `offset` on begin.
struct StrictPiece {
  size_t num_bytes;  // of a character, or of the longest beginning of one, at least 1
  bool is_valid;
  bool is_cut_off;  // valid so far, and the text ends
};

// The first and last allowed second byte: narrower than 80..BF where overlong forms, surrogates or values beyond
// Unicode would begin. 0 bytes for what can be no first byte.
struct LeadRule {
  size_t num_bytes;
  unsigned char second_first;
  unsigned char second_last;
};

LeadRule RuleOf(unsigned char lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

StrictPiece ReadStrict(std::string_view text, size_t offset) {
  const LeadRule rule = RuleOf(ByteAt(text, offset));
  if (rule.num_bytes == 0) return {1, false, false};
  for (size_t i = 1; i < rule.num_bytes; ++i) {
    if (offset + i == text.size()) return {i, false, true};
    const unsigned char byte = ByteAt(text, offset + i);
    const bool fits = i == 1 ? byte >= rule.second_first && byte <= rule.second_last : IsContinuation(byte);
    if (!fits) return {i, false, false};
  }
  return {rule.num_bytes, true, false};
}

}  // namespace

uint32_t Utf8LengthFromLead(unsigned char lead) {
  if (lead < 0xC0) return 1;
  if (lead < 0xE0) return 2;
  return lead < 0xF0 ? 3 : 4;
}

Utf8Character DecodeLenient(std::string_view text, size_t offset) {
  constexpr Utf8Character kInvalid = {kReplacementCharacter, 1};
  const unsigned char lead = ByteAt(text, offset);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC0 || lead >= 0xF8) return kInvalid;
  const uint32_t num_bytes = Utf8LengthFromLead(lead);
  if (text.size() - offset < num_bytes) return kInvalid;
  uint32_t code_point = lead & (0xFFu >> (num_bytes + 1));
  for (uint32_t i = 1; i < num_bytes; ++i) {
    const unsigned char byte = ByteAt(text, offset + i);
    if (!IsContinuation(byte)) return kInvalid;
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  return code_point > kMaxCodePoint ? kInvalid : Utf8Character{code_point, num_bytes};
}

void AppendUtf8(uint32_t code_point, std::string& text) {
  PANDO_CHECK(code_point <= kMaxCodePoint);
  const auto append = [&text](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return append(code_point);
  if (code_point < 0x800) {
    append(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      append(0xE0 | code_point >> 12);
    } else {
      append(0xF0 | code_point >> 18);
      append(0x80 | (code_point >> 12 & 0x3F));
    }
    append(0x80 | (code_point >> 6 & 0x3F));
  }
  append(0x80 | (code_point & 0x3F));
}

bool SurvivesLenientDecoding(std::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    const Utf8Character character = DecodeLenient(text, offset);
    constexpr std::array<uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_replaced = character.num_bytes == 1 && character.code_point == kReplacementCharacter;
    if (is_replaced || character.code_point < kSmallest[character.num_bytes]) return false;
    offset += character.num_bytes;
  }
  return true;
}

std::string ReencodeLenient(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t offset = 0; offset < text.size();) {
    const Utf8Character character = DecodeLenient(text, offset);
    AppendUtf8(character.code_point, result);
    offset += character.num_bytes;
  }
  return result;
}

size_t CompletePrefix(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const size_t offset = text.size() - back;
    if (IsContinuation(ByteAt(text, offset))) continue;
    const StrictPiece piece = ReadStrict(text, offset);
    return piece.is_cut_off && piece.num_bytes == back ? offset : text.size();
  }
  return text.size();
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t offset = 0; offset < text.size();) {
    const StrictPiece piece = ReadStrict(text, offset);
    if (piece.is_valid) {
      result += text.substr(offset, piece.num_bytes);
    } else {
      AppendUtf8(kReplacementCharacter, result);
    }
    offset += piece.num_bytes;
  }
  return result;
}

}  // namespace pando
