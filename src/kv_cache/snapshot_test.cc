#include "src/kv_cache/snapshot.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "src/base/checksum.h"
#include "src/kv_cache/testing/temporary_folder.h"
#include "src/kv_cache/testing/tokens.h"

namespace pando {
namespace {

using test_support::AppendTokens;
using test_support::HoldsTokens;
using test_support::kFourSlots;
using test_support::Names;
using test_support::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kId = 0x1234abcd;

KvCacheOptions Options(SlotRange slots, int64_t window = 0) {
  const KvPageLayout layout = KvPageLayout::Create(KvType::kF32, KvType::kF16, 8, kFourSlots.chunk_tokens).value();
  return {layout, /*num_kv_heads=*/1, kFourSlots, slots, /*num_layers=*/2, window};
}

// Sequences 0 (100 tokens) and 3 (a fork of 0 with 30 more), with 1 and 2 removed.
KvCache CacheWithGaps(SlotRange slots) {
  KvCache cache = KvCache::Create(Options(slots)).value();
  for (int i = 0; i < 3; ++i) cache.AddSequence();
  for (int64_t layer = 0; layer < 2; ++layer) EXPECT_TRUE(AppendTokens(cache, layer, 0, Names(0, 100)).ok());
  EXPECT_EQ(cache.ForkSequence(0).value(), 3);
  for (int64_t layer = 0; layer < 2; ++layer) EXPECT_TRUE(AppendTokens(cache, layer, 3, Names(100, 130)).ok());
  EXPECT_TRUE(cache.RemoveSequence(2).ok());
  EXPECT_TRUE(cache.RemoveSequence(1).ok());
  return cache;
}

std::vector<SlotRange> EvenRanges(int64_t num_ranks) {
  std::vector<SlotRange> ranges;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    ranges.push_back({rank * kFourSlots.num_slots / num_ranks, (rank + 1) * kFourSlots.num_slots / num_ranks});
  }
  return ranges;
}

std::vector<std::string> WriteAll(const TemporaryFolder& folder, const std::vector<SlotRange>& ranges,
                                  uint64_t id = kId) {
  std::vector<std::string> paths;
  for (size_t rank = 0; rank < ranges.size(); ++rank) {
    paths.push_back(folder.File(fmt::format("{:x}.{}", id, rank)));
    const SnapshotPart part{id, static_cast<int64_t>(rank), static_cast<int64_t>(ranges.size())};
    const Status status = WriteSnapshot(CacheWithGaps(ranges[rank]), paths.back(), part);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return paths;
}

// Two files, the second with the metadata of two sequences and one page per layer.
std::vector<std::string> WriteSmall(const TemporaryFolder& folder) {
  const std::vector<std::string> paths = {folder.File("0"), folder.File("1")};
  for (int64_t rank = 0; rank < 2; ++rank) {
    KvCache cache = KvCache::Create(Options(rank == 0 ? SlotRange{0, 1} : SlotRange{1, 4})).value();
    cache.AddSequence();
    for (int64_t layer = 0; layer < 2; ++layer) EXPECT_TRUE(AppendTokens(cache, layer, 0, Names(0, 32)).ok());
    EXPECT_TRUE(cache.ForkSequence(0).ok());
    EXPECT_TRUE(WriteSnapshot(cache, paths[static_cast<size_t>(rank)], {kId, rank, 2}).ok());
  }
  return paths;
}

void ExpectRestoredAs(const KvCache& cache, const KvCache& expected) {
  EXPECT_EQ(cache.used_bytes(), expected.used_bytes());
  EXPECT_EQ(cache.shared_bytes(), expected.shared_bytes());
  EXPECT_FALSE(cache.HasSequence(1));
  EXPECT_FALSE(cache.HasSequence(2));
  for (int64_t layer = 0; layer < 2; ++layer) {
    EXPECT_TRUE(HoldsTokens(cache, layer, 0, Names(0, 100)));
    EXPECT_TRUE(HoldsTokens(cache, layer, 3, Names(0, 130)));
  }
}

std::vector<std::byte> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(chars));
  return {bytes.begin(), bytes.end()};
}

void WriteFile(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

uint64_t NumberAt(std::span<const std::byte> bytes, size_t offset) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

TEST(SnapshotTest, RestoresOntoAnyNumberOfRanks) {
  const TemporaryFolder folder;
  for (const int64_t before : {1, 2, 3, 4}) {
    const std::vector<std::string> paths = WriteAll(folder, EvenRanges(before), static_cast<uint64_t>(before));
    for (const int64_t after : {1, 2, 3, 4}) {
      for (const SlotRange slots : EvenRanges(after)) {
        Result<KvCache> cache = RestoreSnapshot(Options(slots), paths);
        ASSERT_TRUE(cache.ok()) << cache.status().message();
        ExpectRestoredAs(*cache, CacheWithGaps(slots));
        // Life goes on: the same ids on every rank, and what was shared is still never written.
        EXPECT_EQ(cache->AddSequence(), 1);
        ASSERT_TRUE(AppendTokens(*cache, 0, 0, Names(500, 540)).ok());
        EXPECT_TRUE(HoldsTokens(*cache, 0, 3, Names(0, 130)));
      }
    }
  }
}

TEST(SnapshotTest, RanksMayOwnNothingAndFilesComeInAnyOrder) {
  const TemporaryFolder folder;
  std::vector<std::string> paths = WriteAll(folder, {{0, 0}, {0, 3}, {3, 3}, {3, 4}, {4, 4}});
  std::ranges::reverse(paths);
  Result<KvCache> cache = RestoreSnapshot(Options({0, 4}), paths);
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  ExpectRestoredAs(*cache, CacheWithGaps({0, 4}));
  cache = RestoreSnapshot(Options({2, 2}), paths);
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  EXPECT_EQ(cache->used_bytes(), 0u);
  EXPECT_EQ(cache->num_tokens(1, 3), 130);
}

TEST(SnapshotTest, AnEmptyCacheAndAWindowComeBackToo) {
  const TemporaryFolder folder;
  const std::vector<std::string> path = {folder.File("a")};
  KvCache cache = KvCache::Create(Options({0, 4}, /*window=*/20)).value();
  ASSERT_TRUE(WriteSnapshot(cache, path[0], {kId, 0, 1}).ok());
  ASSERT_TRUE(RestoreSnapshot(cache.options(), path).ok());

  cache.AddSequence();
  for (int64_t layer = 0; layer < 2; ++layer) ASSERT_TRUE(AppendTokens(cache, layer, 0, Names(0, 100)).ok());
  cache.ReleaseUnseen(1, 0, 90);
  ASSERT_TRUE(WriteSnapshot(cache, path[0], {kId, 0, 1}).ok());
  Result<KvCache> restored = RestoreSnapshot(cache.options(), path);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_EQ(restored->used_bytes(), cache.used_bytes());
  EXPECT_EQ(restored->first_token(0, 0), 0);
  EXPECT_EQ(restored->first_token(1, 0), 64);
  EXPECT_TRUE(HoldsTokens(*restored, 1, 0, Names(0, 100)));
}

// Ranks that came to the same sequences by different ways: a fork that failed on one of them and was undone elsewhere.
TEST(SnapshotTest, OnlyTheSequencesThatThereAreMatter) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = {folder.File("a"), folder.File("b")};
  KvCache left = CacheWithGaps({0, 2});
  for (int i = 0; i < 3; ++i) left.AddSequence();
  for (const int64_t sequence : {4, 2, 1}) ASSERT_TRUE(left.RemoveSequence(sequence).ok());
  ASSERT_TRUE(WriteSnapshot(left, paths[0], {kId, 0, 2}).ok());
  ASSERT_TRUE(WriteSnapshot(CacheWithGaps({2, 4}), paths[1], {kId, 1, 2}).ok());
  Result<KvCache> cache = RestoreSnapshot(Options({0, 4}), paths);
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  ExpectRestoredAs(*cache, CacheWithGaps({0, 4}));
}

TEST(SnapshotTest, ReadsOnlyThePagesItOwns) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = WriteAll(folder, {{0, 4}});
  std::vector<std::byte> bytes = ReadFile(paths[0]);
  bytes[NumberAt(bytes, 24)] ^= std::byte{1};  // the first page: layer 0, sequence 0, chunk 0
  WriteFile(paths[0], bytes);
  EXPECT_TRUE(RestoreSnapshot(Options({1, 4}), paths).ok());
  EXPECT_THAT(RestoreSnapshot(Options({0, 1}), paths).status().message(),
              AllOf(StartsWith(paths[0]), HasSubstr("page 0 (layer 0, sequence 0, chunk 0) is wrong")));
}

// ---- What can be wrong with files

TEST(SnapshotTest, EveryChangedByteIsFound) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = WriteSmall(folder);
  const std::vector<std::byte> good = ReadFile(paths[1]);
  ASSERT_TRUE(RestoreSnapshot(Options({0, 4}), paths).ok());
  std::fstream file(paths[1], std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t offset, std::byte byte) {
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte));
    file.flush();
  };
  for (size_t offset = 0; offset < good.size(); ++offset) {
    for (const std::byte flip : {std::byte{1} << (offset % 8), std::byte{0xff}}) {
      put(offset, good[offset] ^ flip);
      const Status status = RestoreSnapshot(Options({0, 4}), paths).status();
      ASSERT_FALSE(status.ok()) << "offset " << offset;
      ASSERT_THAT(status.message(), StartsWith(paths[1])) << "offset " << offset;
    }
    put(offset, good[offset]);
  }
  EXPECT_TRUE(RestoreSnapshot(Options({0, 4}), paths).ok());
}

TEST(SnapshotTest, EveryOtherLengthIsFound) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = WriteSmall(folder);
  const size_t length = ReadFile(paths[1]).size();
  for (const size_t longer : {length + 1, length + 8, 2 * length}) {
    std::filesystem::resize_file(paths[1], longer);
    EXPECT_THAT(RestoreSnapshot(Options({0, 4}), paths).status().message(),
                AllOf(StartsWith(paths[1]), HasSubstr(fmt::format("should have {}", length))));
  }
  for (size_t shorter = length; shorter-- > 0;) {
    std::filesystem::resize_file(paths[1], shorter);
    const Status status = RestoreSnapshot(Options({0, 4}), paths).status();
    ASSERT_THAT(status.message(), AllOf(StartsWith(paths[1]), HasSubstr("truncated"))) << shorter;
  }
}

// Metadata that someone changed on purpose, with the right checksum. It may mean something (other tokens in a chunk) or
// nothing, but what comes out is an error or a cache that works.
TEST(SnapshotTest, ForgedMetadataIsRefusedOrHarmless) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = WriteAll(folder, {{0, 4}});
  const std::vector<std::byte> good = ReadFile(paths[0]);
  const size_t metadata_bytes = NumberAt(good, 24);
  int num_refused = 0;
  for (size_t offset = 0; offset + 8 < metadata_bytes; offset += 8) {
    const uint64_t was = NumberAt(good, offset);
    for (const uint64_t forged : {was + 1, was - 1, was + 16, uint64_t{0}, uint64_t{1}, UINT64_MAX, UINT64_MAX / 2,
                                  uint64_t{1} << 47, uint64_t{1} << 63, was << 1, was + (uint64_t{1} << 32)}) {
      std::vector<std::byte> bytes = good;
      std::memcpy(bytes.data() + offset, &forged, sizeof(forged));
      const uint64_t checksum = Checksum(std::span(bytes).first(metadata_bytes - 8));
      std::memcpy(bytes.data() + metadata_bytes - 8, &checksum, sizeof(checksum));
      WriteFile(paths[0], bytes);
      Result<KvCache> cache = RestoreSnapshot(Options({0, 4}), paths);
      if (!cache.ok()) {
        ++num_refused;
        continue;
      }
      for (const int64_t sequence : {0, 3}) {
        if (!cache->HasSequence(sequence)) continue;
        ASSERT_TRUE(AppendTokens(*cache, 0, sequence, Names(0, 50)).ok());
        if (cache->IsConsistent(sequence)) {
          ASSERT_TRUE(cache->ForkSequence(sequence).ok());
        }
        ASSERT_TRUE(cache->RemoveSequence(sequence).ok());
      }
    }
  }
  EXPECT_GT(num_refused, 100);
}

TEST(SnapshotTest, AnotherShapeIsNamed) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = WriteAll(folder, {{0, 4}});
  const auto message = [&](const auto& change) {
    KvCacheOptions options = Options({0, 4});
    change(options);
    const Status status = RestoreSnapshot(options, paths).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), StartsWith(paths[0]));
    return status.message();
  };
  EXPECT_THAT(message([](auto& o) { o.num_layers = 3; }), HasSubstr("number of layers is 2 and this cache's is 3"));
  EXPECT_THAT(message([](auto& o) { o.num_kv_heads = 2; }), HasSubstr("number of KV heads is 1 and this cache's is 2"));
  EXPECT_THAT(message([](auto& o) { o.layout.head_dim = 16; }), HasSubstr("head dim is 8 and this cache's is 16"));
  EXPECT_THAT(message([](auto& o) { o.layout.k_type = KvType::kQ8_0; }),
              HasSubstr("type of the keys is f32 and this cache's is q8_0"));
  EXPECT_THAT(message([](auto& o) { o.layout.v_type = KvType::kBF16; }),
              HasSubstr("type of the values is f16 and this cache's is bf16"));
  EXPECT_THAT(message([](auto& o) { o.tree.num_slots = 8; }),
              HasSubstr("number of slots (S) is 4 and this cache's is 8"));
  EXPECT_THAT(message([](auto& o) { o.tree.chunk_tokens = 32; }),
              HasSubstr("tokens of a chunk (C) is 16 and this cache's is 32"));
  EXPECT_THAT(message([](auto& o) { o.window = 5; }), HasSubstr("window is 0 and this cache's is 5"));
}

TEST(SnapshotTest, AnIncompleteOrMixedSetIsNamed) {
  const TemporaryFolder folder;
  const std::vector<std::string> a = WriteAll(folder, EvenRanges(3), 0xa);
  const std::vector<std::string> b = WriteAll(folder, EvenRanges(3), 0xb);
  const std::vector<std::string> c = WriteAll(folder, {{0, 1}, {2, 4}}, 0xc);
  const auto message = [&](const std::vector<std::string>& paths) {
    return RestoreSnapshot(Options({0, 4}), paths).status().message();
  };
  EXPECT_THAT(message({}), HasSubstr("no snapshot to restore"));
  EXPECT_THAT(message({a[0], a[2]}), HasSubstr("the file of rank 1 is missing"));
  EXPECT_THAT(message({a[1], a[2]}), HasSubstr("the file of rank 0 is missing"));
  EXPECT_THAT(message({a[0], a[1]}), AllOf(HasSubstr("the file of rank 2 is missing"), HasSubstr("of 3 ranks and 2")));
  EXPECT_THAT(message({a[0], a[1], a[1]}), HasSubstr(fmt::format("{} and {} are both of rank 1", a[1], a[1])));
  EXPECT_THAT(message({a[0], b[1], a[2]}),
              HasSubstr(fmt::format("{} is of snapshot 000000000000000a and {} of 000000000000000b", a[0], b[1])));
  EXPECT_THAT(message(c), HasSubstr("has slots 2 to 4 where slot 1 should come"));
  EXPECT_THAT(message({folder.File("none")}), HasSubstr("none: cannot open"));

  KvCache other = CacheWithGaps({1, 2});
  other.AddSequence();
  ASSERT_TRUE(WriteSnapshot(other, a[1], {0xa, 1, 3}).ok());
  EXPECT_THAT(message(a), HasSubstr("different sequences"));
  ASSERT_TRUE(WriteSnapshot(CacheWithGaps({1, 2}), a[1], {0xa, 1, 2}).ok());
  EXPECT_THAT(message(a), HasSubstr("is of 3 ranks and"));
}

TEST(SnapshotTest, AnotherVersionOrNoSnapshotIsNamed) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = WriteAll(folder, {{0, 4}});
  const auto message_with = [&](size_t offset, int value) {
    const std::vector<std::byte> good = ReadFile(paths[0]);
    std::vector<std::byte> bytes = good;
    bytes[offset] = static_cast<std::byte>(value);
    WriteFile(paths[0], bytes);
    const std::string message = RestoreSnapshot(Options({0, 4}), paths).status().message();
    WriteFile(paths[0], good);
    return message;
  };
  EXPECT_THAT(message_with(8, 7), HasSubstr("format version 7: this program reads version 2 only"));
  // The first format did not say which contract it was made under.
  for (const auto& [offset, version] : {std::pair<size_t, int>{8, 1}, {32, 1}, {32, 3}}) {
    EXPECT_THAT(message_with(offset, version),
                AllOf(StartsWith(paths[0]), HasSubstr("made under version " + std::to_string(version) +
                                                      " of the order of sums, and this program computes under "
                                                      "version 2: make it anew")));
  }
  WriteFile(paths[0], std::vector<std::byte>(1000, std::byte{'x'}));
  EXPECT_THAT(RestoreSnapshot(Options({0, 4}), paths).status().message(), HasSubstr("not a snapshot of a Pando"));
}

TEST(SnapshotTest, WhatCannotBeWrittenLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = WriteAll(folder, {{0, 4}});
  const std::vector<std::byte> before = ReadFile(paths[0]);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{5000, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = WriteSnapshot(CacheWithGaps({0, 4}), paths[0], {kId + 1, 0, 1});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(status.message(), AllOf(StartsWith(paths[0]), HasSubstr("cannot write: File too large")));
  EXPECT_EQ(ReadFile(paths[0]), before);
  EXPECT_EQ(folder.NumFiles(), 1);
  EXPECT_THAT(WriteSnapshot(CacheWithGaps({0, 4}), paths[0], {kId, 2, 2}).message(), HasSubstr("rank is 2 of 2"));
}

// Files that users have must stay readable. If this fails, raise kSnapshotVersion.
TEST(SnapshotTest, TheFormatDoesNotChange) {
  const TemporaryFolder folder;
  std::vector<uint64_t> checksums;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0}) {
    KvCacheOptions options = Options({0, 4});
    options.layout = KvPageLayout::Create(type, type, 40, kFourSlots.chunk_tokens).value();
    KvCache cache = KvCache::Create(options).value();
    cache.AddSequence();
    // Numbers that no C library computes.
    Random random(9);
    std::vector<float> tokens(50 * 40);
    for (float& element : tokens) element = static_cast<float>(random.Uniform() - 0.5);
    ThreadPool threads(1);
    ASSERT_TRUE(cache.PrepareAppend(1, 0, tokens.size(), tokens.size()).ok());
    cache.AppendPrepared(1, 0, tokens, tokens, threads);
    ASSERT_TRUE(WriteSnapshot(cache, folder.File("a"), {kId, 0, 1}).ok());
    checksums.push_back(Checksum(ReadFile(folder.File("a"))));
  }
  EXPECT_THAT(checksums, ::testing::ElementsAre(17972364042322354702u, 6208687380284755943u, 7993055379944311653u,
                                                2200320851428242000u));
}

}  // namespace
}  // namespace pando
