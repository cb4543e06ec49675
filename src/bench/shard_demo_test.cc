#include "src/bench/shard_demo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando {
namespace {

TEST(ShardDemoTest, FingerprintsAreEqualAndErrorsSmall) {
  const AttentionOptions options{.num_heads = 4, .num_kv_heads = 2, .head_dim = 64};
  const ShardDemo demo = ShardDemo::Create(options, 5000).value();
  const ShardDemoRow expected = demo.Run(1).value();
  EXPECT_EQ(expected.fingerprint.size(), 16u);
  for (const int64_t num_shards : {2, 3, 7, 64}) {
    const ShardDemoRow row = demo.Run(num_shards).value();
    EXPECT_EQ(row.fingerprint, expected.fingerprint) << num_shards;
    EXPECT_LT(row.max_error, 2e-6);
    EXPECT_GT(row.max_error, 0);
  }
}

TEST(ShardDemoTest, AnotherContextHasAnotherFingerprint) {
  const AttentionOptions options{.head_dim = 64};
  const std::string short_one = ShardDemo::Create(options, 100).value().Run(1).value().fingerprint;
  EXPECT_NE(ShardDemo::Create(options, 101).value().Run(1).value().fingerprint, short_one);
}

TEST(ShardDemoTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ShardDemo::Create({.head_dim = 12}, 64).status().message(), ::testing::HasSubstr("head dim is 12"));
  EXPECT_THAT(ShardDemo::Create({}, 0).status().message(), ::testing::HasSubstr("context is 0"));
  EXPECT_THAT(ShardDemo::Create({}, 64).value().Run(65).status().message(), ::testing::HasSubstr("65"));
}

}  // namespace
}  // namespace pando
