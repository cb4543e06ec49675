// The suite of all transports, and what is particular to MPI. Every rank runs the same tests in the same order.
//
//   mpirun -n 4 mpi_transport_test
#include "src/transport/mpi/mpi_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "src/transport/launch.h"
#include "src/transport/testing/transport_cases.h"

namespace pando {
namespace {

using test_support::TransportCase;
using test_support::TransportCases;
using ::testing::HasSubstr;

void PrintAndLeave(const std::string& sentence) {
  std::cerr << sentence << std::endl;
  _exit(1);
}

const MpiOptions kOptions{.timeout = std::chrono::seconds(60), .on_stuck = PrintAndLeave};

// Of the whole run: MPI is initialised and finalised once.
Transport* transport = nullptr;

std::unique_ptr<Transport> AnotherTransport(MpiOptions options = kOptions) {
  Result<std::unique_ptr<Transport>> another = CreateMpiTransport(options);
  EXPECT_TRUE(another.ok()) << another.status().message();
  return std::move(another).value();
}

class MpiCaseTest : public ::testing::TestWithParam<TransportCase> {};

TEST_P(MpiCaseTest, Holds) { GetParam().run(*transport); }

// Pieces of 1000 bytes: the path of messages that are too long for MPI to count.
TEST_P(MpiCaseTest, HoldsInPieces) {
  if (std::string_view(GetParam().name) == "MovesLargeMessages") GTEST_SKIP() << "16,000 pieces are slow";
  MpiOptions options = kOptions;
  options.max_message_bytes = 1000;
  GetParam().run(*AnotherTransport(options));
}

INSTANTIATE_TEST_SUITE_P(All, MpiCaseTest, ::testing::ValuesIn(TransportCases().begin(), TransportCases().end()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(MpiTransportTest, KnowsWhoItIs) {
  EXPECT_EQ(transport->name(), "mpi");
  const LaunchInfo expected{.rank = transport->rank(), .size = transport->size()};
  EXPECT_EQ(DetectLaunch(), expected);
  EXPECT_TRUE(StartedUnderMpirun());
  EXPECT_TRUE(BuiltWithMpi());
  // All are processes on this machine.
  for (int rank = 0; rank < transport->size(); ++rank) {
    EXPECT_EQ(transport->node_of_rank()[rank], 0);
    EXPECT_EQ(transport->process_of_rank()[rank], rank);
  }
}

TEST(MpiTransportTest, TransportsDoNotMixTheirMessages) {
  if (transport->size() == 1) GTEST_SKIP() << "needs two ranks";
  const std::unique_ptr<Transport> another = AnotherTransport();
  std::byte first{1};
  std::byte second{2};
  if (transport->rank() == 0) {
    const SendPart send_first{.to = 1, .data = &first, .bytes = 1};
    const SendPart send_second{.to = 1, .data = &second, .bytes = 1};
    Result<Transfer> one = transport->Start({&send_first, 1}, {});
    Result<Transfer> two = another->Start({&send_second, 1}, {});
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_TRUE(transport->Wait(*one).ok());
    EXPECT_TRUE(another->Wait(*two).ok());
  } else if (transport->rank() == 1) {
    std::byte received{};
    ASSERT_TRUE(another->Receive(0, {&received, 1}).ok());
    EXPECT_EQ(received, second);
    ASSERT_TRUE(transport->Receive(0, {&received, 1}).ok());
    EXPECT_EQ(received, first);
  }
}

TEST(MpiTransportTest, AnotherSizeNamesRanksAndSizes) {
  if (transport->size() == 1) GTEST_SKIP() << "needs two ranks";
  for (const bool is_longer : {false, true}) {
    // It fails on one rank and not on the others; to free it would take all of them.
    Transport* another = AnotherTransport().release();
    std::vector<std::byte> buffer(is_longer ? 4 : 16);
    if (another->rank() == 0) {
      EXPECT_TRUE(another->Send(1, std::vector<std::byte>(8)).ok());
    } else if (another->rank() == 1) {
      const Status status = another->Receive(0, buffer);
      EXPECT_EQ(status.code(), StatusCode::kFailed);
      EXPECT_THAT(status.message(), HasSubstr(is_longer ? "rank 0 sent more bytes to rank 1 than the 4"
                                                        : "rank 0 sent 8 bytes to rank 1, which expected 16"));
      EXPECT_EQ(another->Receive(0, buffer).message(), status.message());
    }
  }
}

// What ranks other than 0 have to say: what went wrong.
class FailurePrinter : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::cerr << "rank " << transport->rank() << ": " << (result.file_name() ? result.file_name() : "") << ":"
              << result.line_number() << ": " << result.message() << std::endl;
  }
};

}  // namespace
}  // namespace pando

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  pando::Result<std::unique_ptr<pando::Transport>> created = pando::CreateMpiTransport(pando::kOptions);
  if (!created.ok()) {
    std::cerr << created.status().message() << std::endl;
    return 1;
  }
  pando::transport = created->get();
  if (pando::transport->rank() != 0) {
    ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new pando::FailurePrinter);
  }
  return RUN_ALL_TESTS();
}
