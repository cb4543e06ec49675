#include "src/topology/link_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "src/base/errors.h"

namespace pando {
namespace {

struct Point {
  double x = 0;
  double seconds = 0;  // > 0
};

double MedianOf(std::vector<double>& values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Status CheckSample(int64_t x, double seconds, std::string_view unit) {
  if (x < 0) return InvalidArgument("a sample of {} {}: it must not be negative", x, unit);
  if (!std::isfinite(seconds) || seconds <= 0) {
    return InvalidArgument("the sample of {} {} took {} seconds: a time must be finite and above 0", x, unit, seconds);
  }
  return Status();
}

// One point per x, at the median of its times, by x.
template <typename Sample>
Result<std::vector<Point>> MediansOf(std::span<const Sample> samples, int64_t Sample::*x, std::string_view unit) {
  std::map<int64_t, std::vector<double>> seconds_of;
  for (const Sample& sample : samples) {
    PANDO_RETURN_IF_ERROR(CheckSample(sample.*x, sample.seconds, unit));
    seconds_of[sample.*x].push_back(sample.seconds);
  }
  if (seconds_of.size() < 2) {
    return InvalidArgument("{} samples of {} different numbers of {}: a line needs at least two", samples.size(),
                           seconds_of.size(), unit);
  }
  std::vector<Point> points;
  points.reserve(seconds_of.size());
  for (auto& [value, seconds] : seconds_of) points.push_back({static_cast<double>(value), MedianOf(seconds)});
  return points;
}

struct Line {
  double intercept = 0;
  double slope = 0;
};

// Least squares with weights 1 / seconds^2, that is of relative errors; neither coefficient negative.
Line FitLine(std::span<const Point> points) {
  double w = 0;
  double wx = 0;
  double wy = 0;
  double wxx = 0;
  double wxy = 0;
  for (const Point& point : points) {
    const double weight = 1 / (point.seconds * point.seconds);
    w += weight;
    wx += weight * point.x;
    wy += weight * point.seconds;
    wxx += weight * point.x * point.x;
    wxy += weight * point.x * point.seconds;
  }
  const double mean_x = wx / w;
  const double mean_y = wy / w;
  // About the means: the differences of the sums above would cancel.
  double covariance = 0;
  double variance = 0;
  for (const Point& point : points) {
    const double weight = 1 / (point.seconds * point.seconds);
    covariance += weight * (point.x - mean_x) * (point.seconds - mean_y);
    variance += weight * (point.x - mean_x) * (point.x - mean_x);
  }
  const double slope = covariance / variance;
  if (slope <= 0) return {mean_y, 0};
  const double intercept = mean_y - slope * mean_x;
  return intercept >= 0 ? Line{intercept, slope} : Line{0, wxy / wxx};
}

}  // namespace

Status ValidateLinkModel(const LinkModel& link, std::string_view what) {
  const auto is_time = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
  if (!is_time(link.latency_seconds) || !is_time(link.send_overhead_seconds) ||
      !is_time(link.receive_overhead_seconds)) {
    return InvalidArgument(
        "the link {} has latency {} s and overheads {} s and {} s: they must be finite and not "
        "negative",
        what, link.latency_seconds, link.send_overhead_seconds, link.receive_overhead_seconds);
  }
  if (!std::isfinite(link.bytes_per_second) || link.bytes_per_second <= 0) {
    return InvalidArgument("the link {} has {} bytes/s: measure it, or set a finite figure above 0", what,
                           link.bytes_per_second);
  }
  return Status();
}

Result<LinkModel> FitLinkModel(std::span<const PingPongSample> samples) {
  const Result<std::vector<Point>> points = MediansOf(samples, &PingPongSample::bytes, "bytes");
  if (!points.ok()) return points.status();
  const Line line = FitLine(*points);
  const double bytes_per_second = line.slope > 0 ? 1 / line.slope : kUnlimitedBytesPerSecond;
  return LinkModel{.latency_seconds = line.intercept,
                   .bytes_per_second = std::min(bytes_per_second, kUnlimitedBytesPerSecond)};
}

Result<double> FitOverheadSeconds(std::span<const BurstSample> samples) {
  const Result<std::vector<Point>> points = MediansOf(samples, &BurstSample::num_messages, "messages");
  if (!points.ok()) return points.status();
  return FitLine(*points).slope;
}

}  // namespace pando
