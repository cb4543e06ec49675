#include "src/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace pando {
namespace {

uint8_t ByteAt(std::string_view text, size_t at) { return at < text.size() ? static_cast<uint8_t>(text[at]) : 0; }

bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// The length of the character that `text` begins with, 0 where that is not well-formed UTF-8 (Unicode's table 3-7).
size_t CharacterBytes(std::string_view text) {
  const uint8_t first = ByteAt(text, 0);
  const uint8_t second = ByteAt(text, 1);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !IsContinuation(second)) return 0;
  if (first < 0xE0) return 2;
  const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool is_no_character = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  if (is_overlong || is_no_character || !IsContinuation(ByteAt(text, 2))) return 0;
  if (first < 0xF0) return 3;
  return IsContinuation(ByteAt(text, 3)) ? 4 : 0;
}

bool IsControl(std::string_view character) {
  const uint8_t first = ByteAt(character, 0);
  return first < 0x20 || first == 0x7F || (first == 0xC2 && ByteAt(character, 1) < 0xA0);
}

std::string Escaped(std::string_view bytes) {
  if (bytes == "\n") return "\\n";
  if (bytes == "\t") return "\\t";
  if (bytes == "\r") return "\\r";
  if (bytes == "\\") return "\\\\";
  std::string escapes;
  for (const char byte : bytes) escapes += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
  return escapes;
}

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  std::string printable;
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = CharacterBytes(text.substr(at));
    const std::string_view bytes = text.substr(at, std::max<size_t>(length, 1));
    if (bytes.size() > max_bytes - at) return printable + "...";
    printable += length == 0 || bytes == "\\" || IsControl(bytes) ? Escaped(bytes) : std::string(bytes);
    at += bytes.size();
  }
  return printable;
}

}  // namespace pando
