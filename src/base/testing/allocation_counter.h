// Counts what a test program allocates with `new`, in all its threads: linking pando_testing replaces operator new.
#ifndef PANDO_SRC_BASE_TESTING_ALLOCATION_COUNTER_H_
#define PANDO_SRC_BASE_TESTING_ALLOCATION_COUNTER_H_

#include <cstddef>

namespace pando::test_support {

size_t NumAllocations();
size_t NumAllocatedBytes();  // of all of them, whether they were freed or not

}  // namespace pando::test_support

#endif  // PANDO_SRC_BASE_TESTING_ALLOCATION_COUNTER_H_
