// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The chart's measures, in pixels.
const (
	chartWidth, labelWidth = 900, 330
	barHeight, groupGap    = 12, 14
	// The axis is logarithmic, from 1/16 to 16 times upstream.
	axisOctaves = 4
)

// SVG is a chart of all ratios: a group of bars per phase and mode, from the line "as upstream" to the left where ours is
// less.
func (r *Report) SVG() string {
	var body strings.Builder
	y, group := 50, ""
	for _, row := range r.Rows() {
		if name := row.name() + " (" + row.Mode + ")"; name != group {
			group = name
			y += groupGap
			fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labelWidth-8, y+barHeight, html.EscapeString(name))
		}
		if !row.Compared || row.Ratio <= 0 {
			continue
		}
		x, one := xOf(row.Ratio), xOf(1)
		fmt.Fprintf(&body, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s: %s</title></rect>`+"\n",
			math.Min(x, one), y, math.Max(1, math.Abs(x-one)), barHeight-2, row.Metric.Colour,
			html.EscapeString(row.Metric.Name), row.ratioText())
		fmt.Fprintf(&body, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#333"/>`+"\n", xOf(row.Min), xOf(row.Max), y+barHeight/2-1, y+barHeight/2-1)
		y += barHeight
	}
	height := y + 30
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", chartWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", chartWidth, height)
	for i, metric := range Metrics() {
		x := labelWidth + i*90
		fmt.Fprintf(&b, `<rect x="%d" y="10" width="10" height="10" fill="%s"/><text x="%d" y="19">%s</text>`+"\n", x, metric.Colour, x+14, metric.Name)
	}
	for octave := -axisOctaves; octave <= axisOctaves; octave++ {
		x := xOf(math.Pow(2, float64(octave)))
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="42" y2="%d" stroke="%s"/><text x="%.1f" y="38" text-anchor="middle">%s</text>`+"\n",
			x, x, height-20, map[bool]string{true: "#333", false: "#ddd"}[octave == 0], x, axisLabel(octave))
	}
	return b.String() + body.String() + "</svg>\n"
}

func axisLabel(octave int) string {
	if octave < 0 {
		return fmt.Sprintf("1/%d", 1<<-octave)
	}
	return fmt.Sprintf("%d×", 1<<octave)
}

// xOf is where a ratio is on the axis; what is beyond its ends is at them.
func xOf(ratio float64) float64 {
	octaves := math.Log2(math.Max(ratio, 1e-9))
	octaves = math.Max(-axisOctaves, math.Min(axisOctaves, octaves))
	const width = chartWidth - labelWidth - 30
	return labelWidth + width*(octaves+axisOctaves)/(2*axisOctaves)
}
