#include "src/reduction/shared_port.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace pando {
namespace {

// The port in time. `share_` is what a message that is there from the beginning has got so far, in seconds of the whole
// port: a message ends at a share that is known as soon as it begins, whoever comes and goes meanwhile.
class Port {
 public:
  explicit Port(std::span<PortUse> uses) : uses_(uses) {}

  void RunUntil(double time) {
    while (!under_way_.empty()) {
      const auto [share_at_end, index] = under_way_.top();
      const double ends_at = now_ + (share_at_end - share_) * num_under_way();
      if (ends_at > time) break;
      under_way_.pop();
      uses_[index].ends_at = ends_at;
      now_ = ends_at;
      share_ = share_at_end;
    }
    if (!under_way_.empty()) share_ += (time - now_) / num_under_way();
    now_ = time;
  }

  void Begin(size_t index) { under_way_.emplace(share_ + uses_[index].seconds, index); }

 private:
  using Ending = std::pair<double, size_t>;  // share at the end, index of the use

  double num_under_way() const { return static_cast<double>(under_way_.size()); }

  std::span<PortUse> uses_;
  double now_ = 0;
  double share_ = 0;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> under_way_;
};

}  // namespace

void SharePort(std::span<PortUse> uses) {
  std::vector<size_t> order(uses.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return uses[i].begins_at; });
  Port port(uses);
  for (const size_t index : order) {
    port.RunUntil(uses[index].begins_at);
    port.Begin(index);
  }
  port.RunUntil(std::numeric_limits<double>::infinity());
}

}  // namespace pando
