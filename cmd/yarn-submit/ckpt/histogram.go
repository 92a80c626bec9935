package ckpt

import (
	"fmt"
	"io"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/tensor"
)

// hasNumbers reports whether a tensor has a histogram.
func hasNumbers(x *format.Tensor) bool {
	return x != nil && x.Kind != tensor.StringKind && x.Kind.Size() > 0
}

// histogramBins is how many lines a histogram has.
const histogramBins = 20

// Widths of what a line of a histogram has.
const (
	barWidth  = 50 // of one histogram
	pairWidth = 22 // of two beside each other
)

// writeValues writes the summary of a tensor for people, with its histogram.
func writeValues(w io.Writer, v inspect.Values) {
	fmt.Fprintf(w, "%s  %s %v, %d elements\n", v.Name, v.DType, v.Shape, v.Elements)
	if v.Elements == 0 {
		return
	}
	fmt.Fprintln(w, rangeOf(v))
	most := greatest(v.Histogram)
	for i, n := range v.Histogram {
		fmt.Fprintf(w, "%12.4g  %s %d\n", stepOf(v.Min, v.Max, i), bar(n, most, barWidth), n)
		if v.Max == v.Min {
			break // one value
		}
	}
}

// rangeOf says between which values those of a tensor are, in a few digits: all are in JSON.
func rangeOf(v inspect.Values) string {
	text := fmt.Sprintf("min %.6g, mean %s, max %.6g, norm %s", v.Min, orInf(v.Mean), v.Max, orInf(v.Norm))
	if v.NaN+v.Inf > 0 {
		text += fmt.Sprintf("; %d are NaN, %d infinite", v.NaN, v.Inf)
	}
	return text
}

// writeBoth writes the summaries of a tensor in two checkpoints, which titles name, for people,
// with their histograms beside each other in the same steps.
func writeBoth(w io.Writer, titles [2]string, both [2]inspect.Values, least, most float64) {
	for i, v := range both {
		fmt.Fprintf(w, "%s: %s %v, %d elements\n  %s\n", titles[i], v.DType, v.Shape, v.Elements, rangeOf(v))
	}
	counts := max(greatest(both[0].Histogram), greatest(both[1].Histogram))
	fmt.Fprintf(w, "%12s  %-*s  %s\n", "", pairWidth+8, titles[0], titles[1])
	for i := range histogramBins {
		var columns [2]string
		for of, v := range both {
			if v.Histogram != nil {
				columns[of] = fmt.Sprintf("%s %d", bar(v.Histogram[i], counts, pairWidth), v.Histogram[i])
			}
		}
		fmt.Fprintf(w, "%12.4g  %-*s  %s\n", stepOf(least, most, i), pairWidth+8, columns[0], columns[1])
		if least == most {
			break // one value
		}
	}
}

// stepOf returns where a step of a histogram begins.
func stepOf(least, most float64, i int) float64 {
	part := float64(i) / histogramBins
	return least*(1-part) + most*part // the difference of the two may be infinite
}

func greatest(counts []int64) int64 {
	most := int64(1)
	for _, n := range counts {
		most = max(most, n)
	}
	return most
}

// bar draws a count; what is there can be seen.
func bar(n, most int64, width int) string {
	length := int(float64(n) * float64(width) / float64(most))
	if n > 0 {
		length = max(1, length)
	}
	return strings.Repeat("#", length)
}
