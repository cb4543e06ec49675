#include "src/bench/shard_demo.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "src/attention/attention_options.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/fingerprint.h"
#include "src/base/random.h"
#include "src/base/thread_pool.h"
#include "src/kernels/reference/attention_reference.h"

namespace pando {
namespace {

std::vector<float> Normals(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Normal();
  return values;
}

// Keys or values [tokens][KV heads][head_dim] of one KV head as [tokens][head_dim], after rounding to the stored type.
void StoredHead(const KvPageLayout& layout, std::span<const float> k, std::span<const float> v, size_t num_kv_heads,
                size_t kv_head, std::vector<float>& stored_k, std::vector<float>& stored_v) {
  const size_t head_dim = layout.head_dim;
  const size_t stride = num_kv_heads * head_dim;
  std::vector<std::byte> page(layout.head_bytes());
  stored_k.resize(k.size() / num_kv_heads);
  stored_v.resize(stored_k.size());
  for (size_t token = 0; token < k.size() / stride; ++token) {
    const size_t from = token * stride + kv_head * head_dim;
    WriteTokens(layout, page.data(), 0, 1, k.data() + from, v.data() + from, stride);
    ReadKey(layout, page.data(), 0, std::span(stored_k).subspan(token * head_dim, head_dim));
    ReadValue(layout, page.data(), 0, std::span(stored_v).subspan(token * head_dim, head_dim));
  }
}

}  // namespace

struct ShardDemo::Data {
  void MakeExact();
  Result<double> Attend(Communicator& communicator, std::span<float> output, std::span<float> energy) const;

  AttentionOptions options;
  std::vector<float> k, v, q;
  std::vector<double> exact;  // [num_heads][head_dim]
};

void ShardDemo::Data::MakeExact() {
  const size_t head_dim = static_cast<size_t>(options.head_dim);
  const size_t num_kv_heads = static_cast<size_t>(options.num_kv_heads);
  const size_t group = static_cast<size_t>(options.num_heads) / num_kv_heads;
  const KvPageLayout layout = KvPageLayout::Create(options.k_type, options.v_type, options.head_dim, kPanel).value();
  exact.resize(q.size());
  ThreadPool pool(NumThreadsOf(options, 1));
  pool.Run(num_kv_heads, [&](size_t kv_head, size_t) {
    std::vector<float> stored_k;
    std::vector<float> stored_v;
    StoredHead(layout, k, v, num_kv_heads, kv_head, stored_k, stored_v);
    for (size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const reference::Result64 result = reference::Attention64(
          std::span(q).subspan(head * head_dim, head_dim), stored_k, stored_v,
          static_cast<double>(RuleOf(options).score.scale), static_cast<double>(options.softcap));
      std::copy(result.output.begin(), result.output.end(), exact.begin() + static_cast<ptrdiff_t>(head * head_dim));
    }
  });
}

// Seconds of a decode step.
Result<double> ShardDemo::Data::Attend(Communicator& communicator, std::span<float> output,
                                       std::span<float> energy) const {
  Result<Attention> attention = Attention::Create(communicator, options);
  if (!attention.ok()) return attention.status();
  const int64_t sequence = attention->AddSequence();
  PANDO_RETURN_IF_ERROR(attention->Append(0, sequence, k, v));
  double seconds = 0;
  for (int step = 0; step < 2; ++step) {  // the first one warms up
    PANDO_RETURN_IF_ERROR(communicator.Barrier());
    const double start = NowSeconds();
    PANDO_RETURN_IF_ERROR(attention->Decode(0, {sequence, 1}, q, output, energy));
    seconds = NowSeconds() - start;
  }
  return seconds;
}

Result<ShardDemo> ShardDemo::Create(const AttentionOptions& options, int64_t context) {
  PANDO_RETURN_IF_ERROR(CacheOptionsOf(options, {}).status());
  if (context < 1) return InvalidArgument("the context is {}: it must be at least 1", context);
  auto data = std::make_unique<Data>();
  data->options = options;
  const size_t kv_floats = static_cast<size_t>(context * options.num_kv_heads * options.head_dim);
  data->k = Normals(kv_floats, 1);
  data->v = Normals(kv_floats, 2);
  data->q = Normals(static_cast<size_t>(options.num_heads * options.head_dim), 3);
  data->MakeExact();
  return ShardDemo(std::move(data));
}

ShardDemo::ShardDemo(std::unique_ptr<Data> data) : data_(std::move(data)) {}
ShardDemo::ShardDemo(ShardDemo&&) noexcept = default;
ShardDemo& ShardDemo::operator=(ShardDemo&&) noexcept = default;
ShardDemo::~ShardDemo() = default;

Result<ShardDemoRow> ShardDemo::Run(int64_t num_shards) const {
  std::vector<float> output(data_->q.size());
  std::vector<float> energy(static_cast<size_t>(data_->options.num_heads));
  double seconds = 0;
  const Status status = RunInProcess(num_shards, {}, [&](Communicator& communicator) {
    // All ranks get the result; one of them shows it.
    std::vector<float> own_output(output.size());
    std::vector<float> own_energy(energy.size());
    PANDO_ASSIGN_OR_RETURN(const double own_seconds, data_->Attend(communicator, own_output, own_energy));
    if (communicator.rank() == 0) {
      output = own_output;
      energy = own_energy;
      seconds = own_seconds;
    }
    return Status();
  });
  if (!status.ok()) return status;
  ShardDemoRow row;
  row.fingerprint = fmt::format("{:016x}", Fingerprint(energy, Fingerprint(output)));
  row.microseconds = seconds * 1e6;
  for (size_t i = 0; i < output.size(); ++i) {
    row.max_error = std::max(row.max_error, std::abs(static_cast<double>(output[i]) - data_->exact[i]));
  }
  return row;
}

}  // namespace pando
