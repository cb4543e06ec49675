// UTF-8, read leniently: tokenizers meet bytes that are no text.
//
// Two notions of what is valid live here. Pre-tokenizers read as llama.cpp does (DecodeLenient), which takes overlong
// forms and surrogates for characters. What leaves the program as text follows the standard (CompletePrefix,
// ReplaceInvalidUtf8).
#ifndef PANDO_SRC_TOKENIZER_UTF8_H_
#define PANDO_SRC_TOKENIZER_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pando {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;
inline constexpr uint32_t kMaxCodePoint = 0x10FFFF;

inline unsigned char ByteAt(std::string_view text, size_t offset) { return static_cast<unsigned char>(text[offset]); }

struct Utf8Character {
  uint32_t code_point;
  uint32_t num_bytes;
};

// The character at `offset`, which is inside `text`. A byte that begins none is a replacement character of one byte.
Utf8Character DecodeLenient(std::string_view text, size_t offset);

// Whether encoding what DecodeLenient reads gives `text` again.
bool SurvivesLenientDecoding(std::string_view text);

// `text` with each character that DecodeLenient reads encoded again: bytes that are no character become U+FFFD.
std::string ReencodeLenient(std::string_view text);

// Appends the UTF-8 of `code_point`, at most kMaxCodePoint.
void AppendUtf8(uint32_t code_point, std::string& text);

// How many bytes a character has whose first byte is `lead`, 1 for a byte that can be no first byte.
uint32_t Utf8LengthFromLead(unsigned char lead);

// The length of `text` without the beginning of a character, at most 3 bytes, that more bytes could complete.
size_t CompletePrefix(std::string_view text);

// `text` with U+FFFD for every longest piece that is not UTF-8, as the Unicode standard recommends.
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_UTF8_H_
