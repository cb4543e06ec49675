// The figure of `pando bench decode --plot`: time per step, and bytes sent per rank, against the context; a row of
// panels for each number of ranks, a line for each strategy.
#ifndef PANDO_SRC_CLI_REPORTS_DECODE_PLOT_H_
#define PANDO_SRC_CLI_REPORTS_DECODE_PLOT_H_

#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/cli/commands/bench_decode_plan.h"
#include "src/plot/svg_plot.h"

namespace pando::cli {

// Of rows that share a shape and a transport; there is at least one.
PlotFigure MakeDecodeFigure(const std::vector<MeasuredDecode>& rows);

// Whether a file can be made at `path`, as far as that can be known before. `path` is only touched by WritePlot.
Status CheckPlotPath(const std::string& path);

// The whole file or none.
Status WritePlot(const std::string& path, const std::string& svg);

// Of MPI's own collectives only the operands are known.
inline constexpr const char* kBytesAxis = "bytes sent per rank (collectives: operands)";

// A strategy looks the same in every figure.
int LookOf(std::string_view strategy);

// "310 us", "1 ms", "10 s"; "100 B", "1 kB", "10 GB".
std::string FormatMicroseconds(double microseconds);
std::string FormatDecimalBytes(double bytes);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_DECODE_PLOT_H_
