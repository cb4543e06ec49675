// The alphabet of byte-level BPE: each byte has a printable character, in which vocabularies and merges are written.
//
// Printable bytes of Latin-1 stand for themselves, the others (space, controls, 0x7F..0xA0, 0xAD) for U+0100 and on in
// their order: a space is "Ġ".
#ifndef PANDO_SRC_TOKENIZER_BYTE_ALPHABET_H_
#define PANDO_SRC_TOKENIZER_BYTE_ALPHABET_H_

#include <string>
#include <string_view>

namespace pando {

// The UTF-8 of the byte's character.
std::string_view CharacterOfByte(unsigned char byte);

// Writes `bytes` in the alphabet, into `text`, whose memory is used again.
void WriteInByteAlphabet(std::string_view bytes, std::string& text);

// The bytes that `text` stands for. A character that is not of the alphabet stands for its own UTF-8.
std::string BytesOfByteAlphabet(std::string_view text);

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_BYTE_ALPHABET_H_
