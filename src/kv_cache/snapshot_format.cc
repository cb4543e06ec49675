#include "src/kv_cache/snapshot_format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "pando/contract.h"
#include "src/base/check.h"
#include "src/base/checksum.h"
#include "src/base/errors.h"
#include "src/kv_cache/byte_stream.h"
#include "src/kv_cache/page_visit.h"

namespace pando {
namespace {

constexpr size_t kNumberBytes = sizeof(uint64_t);

// Up to eight characters as one number, so that they can be read in a hex dump.
uint64_t FromText(std::string_view text) {
  uint64_t number = 0;
  std::memcpy(&number, text.data(), std::min(text.size(), sizeof(number)));
  return number;
}

std::string ToText(uint64_t number) {
  std::array<char, sizeof(number) + 1> text{};
  std::memcpy(text.data(), &number, sizeof(number));
  return text.data();
}

const uint64_t kMagic = FromText("PANDOKV\n");

// What must be equal in a snapshot and in the cache that it is restored to.
struct ShapeField {
  const char* name;
  uint64_t value;
  bool is_text = false;
};

std::array<ShapeField, 9> ShapeOf(const KvCacheOptions& options) {
  const auto number = [](int64_t value) { return static_cast<uint64_t>(value); };
  const KvPageLayout& layout = options.layout;
  return {{{"number of layers", number(options.num_layers)},
           {"number of KV heads", number(options.num_kv_heads)},
           {"head dim", layout.head_dim},
           {"type of the keys", FromText(KvTypeName(layout.k_type)), true},
           {"type of the values", FromText(KvTypeName(layout.v_type)), true},
           {"number of slots (S)", number(options.tree.num_slots)},
           {"tokens of a chunk (C)", number(options.tree.chunk_tokens)},
           {"window", number(options.window)},
           {"bytes of a page", number(options.num_kv_heads) * layout.head_bytes()}}};
}

std::string ValueText(const ShapeField& field) {
  if (!field.is_text) return std::to_string(field.value);
  // A name from outside may be anything: only one that we know is repeated.
  const std::string name = ToText(field.value);
  return ParseKvType(name).ok() ? name : std::string("unknown");
}

Status Corrupted(const std::string& path, std::string_view what) {
  return Failed("{}: {}: the file is corrupted; restore it from a copy or from another snapshot", path, what);
}

// Its slots hold other chunks, and what follows would have other bits.
Status OfAnotherContract(const std::string& path, uint64_t version) {
  return Failed(
      "{}: made under version {} of the order of sums, and this program computes under version {}: make it anew", path,
      version, kContractVersion);
}

// ---- The sequence table. Origins are numbered anew in the order in which they appear, and free ids at the end are
// left out, so that ranks with the same sequences write the same bytes.

std::vector<std::byte> EncodeTable(const SequenceTable& table) {
  std::unordered_map<int64_t, int64_t> new_origins;
  const auto new_origin = [&](int64_t origin) {
    return new_origins.try_emplace(origin, static_cast<int64_t>(new_origins.size())).first->second;
  };
  int64_t num_ids = table.num_ids();
  while (num_ids > 0 && !table.Has(num_ids - 1)) --num_ids;
  ByteWriter out;
  out.Put(num_ids);
  for (int64_t id = 0; id < num_ids; ++id) {
    const SequenceEntry& entry = table.entry(id);
    out.Put(int64_t{entry.in_use ? 1 : 0});
    if (!entry.in_use) continue;
    out.Put(static_cast<uint64_t>(entry.inherited.size()));
    for (const InheritedRun& run : entry.inherited) {
      out.Put(new_origin(run.origin));
      out.Put(run.end_chunk);
    }
    out.Put(new_origin(entry.origin));
    for (const LayerFill& fill : entry.layers) {
      out.Put(fill.num_tokens);
      out.Put(fill.first_chunk);
    }
  }
  return out.Take();
}

class TableDecoder {
 public:
  TableDecoder(ByteReader& in, int64_t num_layers) : in_(in), num_layers_(static_cast<size_t>(num_layers)) {}

  // An empty list where the bytes do not add up: see ok().
  std::vector<SequenceEntry> Decode() {
    const uint64_t num_ids = in_.Next();
    if (num_ids > in_.num_left()) return Fail();
    std::vector<SequenceEntry> entries;
    for (uint64_t id = 0; id < num_ids && ok_; ++id) entries.push_back(DecodeEntry());
    return in_.ran_out() ? Fail() : entries;
  }

  bool ok() const { return ok_; }
  int64_t next_origin() const { return next_origin_; }

 private:
  std::vector<SequenceEntry> Fail() {
    ok_ = false;
    return {};
  }

  SequenceEntry DecodeEntry() {
    SequenceEntry entry;
    const uint64_t in_use = in_.Next();
    if (in_use > 1) ok_ = false;
    entry.in_use = in_use == 1;
    if (!entry.in_use) return entry;
    const uint64_t num_inherited = in_.Next();
    if (num_inherited > in_.num_left() / 2 || num_layers_ > in_.num_left() / 2) {
      ok_ = false;
      return entry;
    }
    for (uint64_t run = 0; run < num_inherited; ++run) {
      const int64_t origin = DecodeOrigin();
      entry.inherited.push_back({origin, in_.NextSigned()});
    }
    entry.origin = DecodeOrigin();
    for (size_t layer = 0; layer < num_layers_; ++layer) {
      const int64_t num_tokens = in_.NextSigned();
      entry.layers.push_back({num_tokens, in_.NextSigned()});
    }
    return entry;
  }

  int64_t DecodeOrigin() {
    const int64_t origin = in_.NextSigned();
    if (origin < 0 || origin > next_origin_) ok_ = false;
    if (origin == next_origin_) ++next_origin_;
    return origin;
  }

  ByteReader& in_;
  size_t num_layers_;
  int64_t next_origin_ = 0;
  bool ok_ = true;
};

// ---- The parts of the metadata after the prologue, in their order

Status DecodeShape(const std::string& path, ByteReader& in, const KvCacheOptions& options) {
  for (const ShapeField& expected : ShapeOf(options)) {
    ShapeField found = expected;
    found.value = in.Next();
    if (found.value == expected.value) continue;
    return InvalidArgument("{}: the snapshot's {} is {} and this cache's is {}: restore it to a cache of its own shape",
                           path, expected.name, ValueText(found), ValueText(expected));
  }
  return Status();
}

Status DecodePart(const std::string& path, ByteReader& in, int64_t num_slots, SnapshotMetadata& metadata) {
  metadata.part.id = in.Next();
  metadata.part.rank = in.NextSigned();
  metadata.part.num_ranks = in.NextSigned();
  if (metadata.part.rank < 0 || metadata.part.rank >= metadata.part.num_ranks) {
    return Corrupted(path, fmt::format("it is of rank {} of {}", metadata.part.rank, metadata.part.num_ranks));
  }
  metadata.slots.begin = in.NextSigned();
  metadata.slots.end = in.NextSigned();
  const SlotRange slots = metadata.slots;
  if (slots.begin < 0 || slots.end < slots.begin || slots.end > num_slots) {
    return Corrupted(path, fmt::format("it has slots {} to {} of {}", slots.begin, slots.end, num_slots));
  }
  return Status();
}

Status DecodeTable(const std::string& path, ByteReader& in, const KvCacheOptions& options, SnapshotMetadata& metadata) {
  const std::span<const std::byte> from = in.rest();
  TableDecoder decoder(in, options.num_layers);
  std::vector<SequenceEntry> entries = decoder.Decode();
  if (!decoder.ok()) return Corrupted(path, "its sequence table does not add up");
  metadata.table_checksum = Checksum(from.first(from.size() - in.rest().size()));
  const Status status = SequenceTable::Validate(options.tree, options.window, decoder.next_origin(), entries);
  if (!status.ok()) return Corrupted(path, status.message());
  metadata.table = SequenceTable(options.num_layers, decoder.next_origin(), std::move(entries));
  return Status();
}

// As many pages as the table asks for, and as the file has room for.
Status DecodePages(const std::string& path, ByteReader& in, const KvCacheOptions& options, uint64_t file_bytes,
                   SnapshotMetadata& metadata) {
  const uint64_t num_pages = in.Next();
  const uint64_t page_bytes = static_cast<uint64_t>(options.num_kv_heads) * options.layout.head_bytes();
  const uint64_t room = file_bytes - metadata.pages_offset;
  const bool is_listed = num_pages == in.num_left() && in.rest().size() % kNumberBytes == 0;
  if (!is_listed || num_pages > room / page_bytes || num_pages * page_bytes != room) {
    return Corrupted(path, fmt::format("it lists {} pages and has {} bytes of them", num_pages, room));
  }
  size_t num_asked = 0;
  VisitPages(metadata.table, OwnedChunks(options.tree, metadata.slots), [&](const PageVisit& visit) {
    if (visit.is_new) ++num_asked;
    return num_asked <= num_pages;
  });
  if (num_asked != num_pages) return Corrupted(path, "its pages are not those of its sequences");
  metadata.page_checksums.reserve(num_pages);
  for (uint64_t page = 0; page < num_pages; ++page) metadata.page_checksums.push_back(in.Next());
  return Status();
}

}  // namespace

size_t MetadataBytes(const KvCache& cache) {
  const size_t num_pages = CountPages(cache.table(), OwnedChunks(cache.options().tree, cache.options().slots));
  const size_t num_numbers = ShapeOf(cache.options()).size() + 5 + 1 + num_pages + 1;  // shape, part, pages, checksum
  return kPrologueBytes + EncodeTable(cache.table()).size() + num_numbers * kNumberBytes;
}

std::vector<std::byte> EncodeMetadata(const KvCache& cache, const SnapshotPart& part,
                                      std::span<const uint64_t> page_checksums) {
  const uint64_t metadata_bytes = MetadataBytes(cache);
  ByteWriter out;
  out.Put(kMagic);
  out.Put(kSnapshotVersion);
  out.Put(metadata_bytes + page_checksums.size() * cache.page_bytes());
  out.Put(metadata_bytes);
  out.Put(static_cast<uint64_t>(kContractVersion));
  for (const ShapeField& field : ShapeOf(cache.options())) out.Put(field.value);
  out.Put(part.id);
  out.Put(part.rank);
  out.Put(part.num_ranks);
  out.Put(cache.options().slots.begin);
  out.Put(cache.options().slots.end);
  out.Append(EncodeTable(cache.table()));
  out.Put(static_cast<uint64_t>(page_checksums.size()));
  for (const uint64_t checksum : page_checksums) out.Put(checksum);
  out.Put(Checksum(out.bytes()));
  PANDO_CHECK(out.bytes().size() == metadata_bytes);
  return out.Take();
}

Result<size_t> DecodePrologue(const std::string& path, std::span<const std::byte> prologue, uint64_t file_bytes) {
  ByteReader in(prologue);
  if (in.Next() != kMagic) return Failed("{}: not a snapshot of a Pando KV cache", path);
  const uint64_t version = in.Next();
  if (version == 1) return OfAnotherContract(path, 1);
  if (version != kSnapshotVersion) {
    return Failed("{}: format version {}: this program reads version {} only", path, version, kSnapshotVersion);
  }
  const uint64_t expected_bytes = in.Next();
  if (expected_bytes != file_bytes) {
    return Failed("{}: has {} bytes and should have {}: the file is truncated or was not copied whole", path,
                  file_bytes, expected_bytes);
  }
  const uint64_t metadata_bytes = in.Next();
  const uint64_t contract_version = in.Next();
  if (contract_version != kContractVersion) return OfAnotherContract(path, contract_version);
  if (in.ran_out() || metadata_bytes > file_bytes || metadata_bytes < kPrologueBytes + kNumberBytes) {
    return Corrupted(path, fmt::format("{} bytes of metadata in a file of {}", metadata_bytes, file_bytes));
  }
  return static_cast<size_t>(metadata_bytes);
}

Result<SnapshotMetadata> DecodeMetadata(const std::string& path, std::span<const std::byte> metadata,
                                        uint64_t file_bytes, const KvCacheOptions& options) {
  const auto before_checksum = metadata.first(metadata.size() - kNumberBytes);
  if (ByteReader(metadata.subspan(before_checksum.size())).Next() != Checksum(before_checksum)) {
    return Corrupted(path, "the checksum of its metadata is wrong");
  }
  ByteReader in(before_checksum.subspan(kPrologueBytes));
  SnapshotMetadata decoded;
  decoded.pages_offset = metadata.size();
  Status status = DecodeShape(path, in, options);
  if (status.ok()) status = DecodePart(path, in, options.tree.num_slots, decoded);
  if (status.ok()) status = DecodeTable(path, in, options, decoded);
  if (status.ok()) status = DecodePages(path, in, options, file_bytes, decoded);
  if (!status.ok()) return status;
  return decoded;
}

}  // namespace pando
