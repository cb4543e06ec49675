// Text from a file, made fit for a message or a terminal.
//
//   Printable("tab\there \x1b[31m")  ->  "tab\\there \\x1b[31m"
#ifndef PANDO_SRC_BASE_PRINTABLE_H_
#define PANDO_SRC_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace pando {

// `text` with control characters (C0, DEL, and C1 in UTF-8), backslashes and bytes that are not UTF-8 as escapes: one
// line that cannot steer a terminal, from which the bytes can be told. Of a text of more than `max_bytes` the rest is
// cut off, and "..." says so.
std::string Printable(std::string_view text, size_t max_bytes = static_cast<size_t>(-1));

}  // namespace pando

#endif  // PANDO_SRC_BASE_PRINTABLE_H_
