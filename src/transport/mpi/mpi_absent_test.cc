#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/transport/mpi/mpi_transport.h"

namespace pando {
namespace {

TEST(MpiAbsentTest, SaysWhatToInstall) {
  EXPECT_FALSE(BuiltWithMpi());
  const Result<std::unique_ptr<Transport>> transport = CreateMpiTransport({});
  ASSERT_FALSE(transport.ok());
  EXPECT_THAT(transport.status().message(), ::testing::HasSubstr("built without MPI"));
}

}  // namespace
}  // namespace pando
