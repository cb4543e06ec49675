#include "src/tokenizer/byte_alphabet.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/tokenizer/utf8.h"

namespace pando {
namespace {

bool StandsForItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr uint32_t kFirstOther = 0x100;
constexpr uint32_t kNumOther = 256 - (0x7E - 0x21 + 1) - (0xAC - 0xA1 + 1) - (0xFF - 0xAE + 1);

struct Alphabet {
  std::array<std::string, 256> characters;             // [byte]
  std::array<int16_t, kFirstOther + kNumOther> bytes;  // [code point], -1 for none
};

Alphabet MakeAlphabet() {
  Alphabet alphabet;
  alphabet.bytes.fill(-1);
  uint32_t next_other = kFirstOther;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t code_point = StandsForItself(byte) ? byte : next_other++;
    AppendUtf8(code_point, alphabet.characters[byte]);
    alphabet.bytes[code_point] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

const Alphabet& TheAlphabet() {
  static const Alphabet alphabet = MakeAlphabet();
  return alphabet;
}

}  // namespace

std::string_view CharacterOfByte(unsigned char byte) { return TheAlphabet().characters[byte]; }

void WriteInByteAlphabet(std::string_view bytes, std::string& text) {
  text.clear();
  for (const char byte : bytes) text += TheAlphabet().characters[static_cast<unsigned char>(byte)];
}

std::string BytesOfByteAlphabet(std::string_view text) {
  const Alphabet& alphabet = TheAlphabet();
  std::string bytes;
  for (size_t offset = 0; offset < text.size();) {
    const Utf8Character character = DecodeLenient(text, offset);
    const bool is_known = character.code_point < alphabet.bytes.size() && alphabet.bytes[character.code_point] >= 0;
    if (is_known) {
      bytes.push_back(static_cast<char>(alphabet.bytes[character.code_point]));
    } else {
      bytes += text.substr(offset, character.num_bytes);
    }
    offset += character.num_bytes;
  }
  return bytes;
}

}  // namespace pando
