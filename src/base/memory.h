// How much memory the machine has, and how to say so.
#ifndef PANDO_SRC_BASE_MEMORY_H_
#define PANDO_SRC_BASE_MEMORY_H_

#include <cstddef>
#include <string>

namespace pando {

// What can be allocated now without swapping: the system's estimate, lowered to the control group's limit where there
// is one.
size_t AvailableMemoryBytes();

// "512 B", "16.6 KiB", "4.0 GiB".
std::string FormatBytes(size_t bytes);

}  // namespace pando

#endif  // PANDO_SRC_BASE_MEMORY_H_
