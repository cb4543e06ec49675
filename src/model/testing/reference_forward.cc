#include "src/model/testing/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/base/random.h"

namespace pando::test_support {
namespace {

using Vector = std::vector<double>;

class Reference {
 public:
  Reference(const Model& model, const ReferenceNoise& noise)
      : model_(model), config_(model.config()), noise_(noise), random_(noise.seed) {}

  Vector Logits(std::span<const int32_t> tokens) {
    std::vector<Vector> x;
    for (const int32_t token : tokens) x.push_back(Row(model_.weights().embedding, static_cast<size_t>(token)));
    for (const LayerWeights& layer : model_.weights().layers) {
      const std::vector<Vector> attended = Attend(layer, Normalized(x, layer.attention_norm));
      Add(x, Multiplied(layer.o, attended), layer.o_bias);
      const std::vector<Vector> h = Normalized(x, layer.ffn_norm);
      Add(x, Multiplied(layer.down, Gated(Multiplied(layer.gate, h), Multiplied(layer.up, h))), {});
    }
    Vector logits;
    for (const Vector& row : Multiplied(model_.weights().output, Normalized(x, model_.weights().output_norm))) {
      logits.insert(logits.end(), row.begin(), row.end());
    }
    return logits;
  }

 private:
  double Noise() { return 2 * random_.Uniform() - 1; }

  Vector Row(const WeightMatrix& matrix, size_t row) {
    std::vector<float> values(matrix.columns);
    DequantizeRow(matrix, row, values.data());
    Vector result(values.begin(), values.end());
    if (noise_.weights > 0) {
      for (double& value : result) value *= 1 + noise_.weights * Noise();
    }
    return result;
  }

  // By up to half a step of 8 bits, the largest of each 32 being 127 steps.
  void MoveByHalfAStep(Vector& values) {
    for (size_t first = 0; first < values.size(); first += 32) {
      const size_t end = std::min(values.size(), first + 32);
      double largest = 0;
      for (size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
      for (size_t i = first; i < end; ++i) values[i] += largest / 254 * Noise();
    }
  }

  void RoundToKvType(Vector& values) {
    if (noise_.kv_type == KvType::kQ8_0) MoveByHalfAStep(values);
    const double step = noise_.kv_type == KvType::kF16 ? 0x1p-11 : noise_.kv_type == KvType::kBF16 ? 0x1p-8 : 0;
    for (double& value : values) value *= 1 + step * Noise();
  }

  std::vector<Vector> Multiplied(const WeightMatrix& matrix, std::vector<Vector> x) {
    if (noise_.activations && IsQuantized(matrix.type)) {
      for (Vector& token : x) MoveByHalfAStep(token);
    }
    std::vector<Vector> result(x.size(), Vector(matrix.rows));
    for (size_t row = 0; row < matrix.rows; ++row) {
      const Vector weights = Row(matrix, row);
      for (size_t token = 0; token < x.size(); ++token) {
        for (size_t c = 0; c < matrix.columns; ++c) result[token][row] += weights[c] * x[token][c];
      }
    }
    return result;
  }

  Vector NormalizedVector(const Vector& x, std::span<const float> weight) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double root = std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(config_.rms_epsilon));
    Vector result(x.size());
    for (size_t i = 0; i < x.size(); ++i) result[i] = x[i] / root * static_cast<double>(weight[i]);
    return result;
  }

  std::vector<Vector> Normalized(const std::vector<Vector>& x, std::span<const float> weight) const {
    std::vector<Vector> result;
    result.reserve(x.size());
    for (const Vector& token : x) result.push_back(NormalizedVector(token, weight));
    return result;
  }

  static std::vector<Vector> Gated(std::vector<Vector> gate, const std::vector<Vector>& up) {
    for (size_t token = 0; token < gate.size(); ++token) {
      for (size_t i = 0; i < gate[token].size(); ++i) {
        gate[token][i] = gate[token][i] / (1 + std::exp(-gate[token][i])) * up[token][i];
      }
    }
    return gate;
  }

  static void Add(std::vector<Vector>& x, const std::vector<Vector>& y, std::span<const float> bias) {
    for (size_t token = 0; token < x.size(); ++token) {
      for (size_t i = 0; i < x[token].size(); ++i) {
        x[token][i] += y[token][i] + (bias.empty() ? 0 : static_cast<double>(bias[i]));
      }
    }
  }

  // ---- The rotation

  // Radians per position of a pair.
  double Frequency(size_t pair) const {
    const RopeRule& rope = config_.rope;
    const double dims = static_cast<double>(rope.dims);
    const double i = static_cast<double>(pair);
    double frequency = std::pow(rope.base, -2 * i / dims);
    if (!rope.divisors.empty()) frequency /= static_cast<double>(rope.divisors[pair]);
    if (rope.scaling == RopeScaling::kNone) return frequency;
    if (rope.scaling == RopeScaling::kLinear) return frequency / rope.factor;
    const auto pair_that_turns = [&](double turns) {
      return dims * std::log(rope.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(rope.base));
    };
    const double low = std::max(0.0, std::floor(pair_that_turns(rope.beta_fast)));
    const double high = std::min(dims - 1, std::ceil(pair_that_turns(rope.beta_slow)));
    const double stretched = std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
    return frequency * (1 - stretched) + frequency / rope.factor * stretched;
  }

  double Magnitude() const {
    const RopeRule& rope = config_.rope;
    return rope.attention_factor * (rope.scaling == RopeScaling::kYarn ? 1 + 0.1 * std::log(rope.factor) : 1);
  }

  void Rotate(Vector& head, size_t position) const {
    const bool adjacent = config_.architecture.rope_pairs == RopePairs::kAdjacent;
    const size_t num_pairs = config_.rope.dims / 2;
    for (size_t pair = 0; pair < num_pairs; ++pair) {
      const double angle = static_cast<double>(position) * Frequency(pair);
      double& first = head[adjacent ? 2 * pair : pair];
      double& second = head[adjacent ? 2 * pair + 1 : pair + num_pairs];
      const double turned = first * std::cos(angle) - second * std::sin(angle);
      second = (first * std::sin(angle) + second * std::cos(angle)) * Magnitude();
      first = turned * Magnitude();
    }
  }

  // ---- Attention

  // [tokens][heads][head_dim] of q or k, with bias, norm and rotation.
  std::vector<std::vector<Vector>> Heads(const std::vector<Vector>& projected, std::span<const float> bias,
                                         std::span<const float> norm, bool is_rotated) const {
    std::vector<std::vector<Vector>> result(projected.size());
    for (size_t token = 0; token < projected.size(); ++token) {
      for (size_t first = 0; first < projected[token].size(); first += config_.head_dim) {
        Vector head(config_.head_dim);
        for (size_t i = 0; i < head.size(); ++i) {
          head[i] = projected[token][first + i] + (bias.empty() ? 0 : static_cast<double>(bias[first + i]));
        }
        if (!norm.empty()) head = NormalizedVector(head, norm);
        if (is_rotated) Rotate(head, token);
        result[token].push_back(std::move(head));
      }
    }
    return result;
  }

  std::vector<Vector> Attend(const LayerWeights& layer, const std::vector<Vector>& h) {
    const std::span<const float> bias = layer.qkv_bias;
    const auto part = [&](size_t first, size_t size) { return bias.empty() ? bias : bias.subspan(first, size); };
    const size_t q_rows = config_.q_rows();
    const size_t kv_rows = config_.kv_rows();
    const auto q = Heads(Multiplied(layer.q, h), part(0, q_rows), layer.q_norm, true);
    auto k = Heads(Multiplied(layer.k, h), part(q_rows, kv_rows), layer.k_norm, true);
    auto v = Heads(Multiplied(layer.v, h), part(q_rows + kv_rows, kv_rows), {}, false);
    for (auto* heads : {&k, &v}) {
      for (auto& token : *heads) {
        for (Vector& head : token) RoundToKvType(head);
      }
    }
    std::vector<Vector> result(h.size());
    const size_t group = config_.num_heads / config_.num_kv_heads;
    for (size_t token = 0; token < h.size(); ++token) {
      for (size_t head = 0; head < config_.num_heads; ++head) {
        const Vector output = AttendHead(q[token][head], k, v, head / group, token);
        result[token].insert(result[token].end(), output.begin(), output.end());
      }
    }
    return result;
  }

  Vector AttendHead(const Vector& q, const std::vector<std::vector<Vector>>& k,
                    const std::vector<std::vector<Vector>>& v, size_t kv_head, size_t token) const {
    const size_t window = static_cast<size_t>(config_.window.value_or(static_cast<int64_t>(token) + 1));
    const size_t first = token + 1 > window ? token + 1 - window : 0;
    Vector scores;
    for (size_t seen = first; seen <= token; ++seen) {
      double score = 0;
      for (size_t i = 0; i < q.size(); ++i) score += q[i] * k[seen][kv_head][i];
      scores.push_back(score / std::sqrt(static_cast<double>(q.size())));
    }
    const double largest = *std::ranges::max_element(scores);
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    Vector output(q.size());
    for (size_t seen = first; seen <= token; ++seen) {
      for (size_t i = 0; i < q.size(); ++i) output[i] += scores[seen - first] / sum * v[seen][kv_head][i];
    }
    return output;
  }

  const Model& model_;
  const ModelConfig& config_;
  const ReferenceNoise noise_;
  Random random_;
};

}  // namespace

std::vector<double> ReferenceLogits(const Model& model, std::span<const int32_t> tokens, const ReferenceNoise& noise) {
  return Reference(model, noise).Logits(tokens);
}

}  // namespace pando::test_support
