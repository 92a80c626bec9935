package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/tensor"
)

type ckptCatOptions struct {
	output
	values bool
}

func newCkptCatCommand() *cobra.Command {
	o := &ckptCatOptions{}
	cmd := &cobra.Command{
		Use:   "cat URI|JOB STEP TENSOR",
		Short: "show a tensor: a summary of its numbers, or all of them",
		Long: `Cat shows the smallest, largest and mean value of a tensor, how many are no
finite numbers, and how the others are spread; of complex numbers, their
absolute values. With --values it prints all of them, one a line, as they lie in
memory: row by row. Tensors of strings are always printed so.`,
		Args: between(3, 3, "URI|JOB STEP TENSOR"),
		RunE: func(cmd *cobra.Command, args []string) error { return runCkptCat(cmd, o, args[0], args[1], args[2]) },
	}
	cmd.Flags().BoolVar(&o.values, "values", false, "print all values")
	o.add(cmd)
	return cmd
}

const histogramBins = 20

// catTensor is the JSON of ckpt cat. A mean or norm that is not finite is null.
type catTensor struct {
	Name      string      `json:"name"`
	DType     tensor.Kind `json:"dtype"`
	Shape     []int64     `json:"shape"`
	Elements  int64       `json:"elements"`
	NaN       int64       `json:"nan"`
	Inf       int64       `json:"inf"`
	Min       float64     `json:"min"`
	Max       float64     `json:"max"`
	Mean      *float64    `json:"mean"`
	Norm      *float64    `json:"norm"`
	Histogram []int64     `json:"histogram"` // equal steps from min to max
	Values    []any       `json:"values,omitempty"`
}

func runCkptCat(cmd *cobra.Command, o *ckptCatOptions, ref, which, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	return listed(cmd, ref, func(d client.Directory, list []hdfsckpt.Checkpoint) error {
		c, err := client.Choose(list, d.Store.URI(), which)
		if err != nil {
			return err
		}
		t, err := hdfsckpt.OpenTensors(cmd.Context(), d.Store, c)
		if err != nil {
			return err
		}
		defer t.Close()
		x := t.Find(name)
		if x == nil {
			return client.Usagef("there is no tensor %s in %s: see yarn-submit ckpt show %s %s", name, c.Name, ref, which)
		}
		values, summary, err := readTensor(x, o.values)
		if err != nil {
			return err
		}
		if !o.json() {
			return writeTensor(cmd.OutOrStdout(), x, values, summary)
		}
		return writeJSON(cmd.OutOrStdout(), catTensor{
			Name: x.Name, DType: x.Kind, Shape: append([]int64{}, x.Shape...), Elements: summary.Elements,
			NaN: summary.NaN, Inf: summary.Inf, Min: summary.Min, Max: summary.Max,
			Mean: finite(summary.Mean), Norm: finite(summary.Norm),
			Histogram: summary.Histogram, Values: values,
		})
	})
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// readTensor reads a tensor; strings have no summary, and always their values.
func readTensor(t *hdfsckpt.Tensor, wanted bool) ([]any, hdfsckpt.Summary, error) {
	var values []any
	if t.Kind == tensor.StringKind {
		list, err := t.Strings()
		for _, s := range list {
			values = append(values, s)
		}
		return values, hdfsckpt.Summary{Elements: int64(len(list))}, err
	}
	b, err := t.Read()
	if err != nil {
		return nil, hdfsckpt.Summary{}, err
	}
	summary, err := hdfsckpt.Summarise(t.Kind, b, histogramBins)
	if err != nil || !wanted {
		return nil, summary, err
	}
	for at := 0; at < len(b); at += t.Kind.Size() {
		values = append(values, value(t.Kind, b[at:]))
	}
	return values, summary, nil
}

// number is a number's digits: JSON has no limit to them.
type number string

// MarshalJSON writes them as they are, and as a text what JSON has no number
// for: NaN, infinities.
func (n number) MarshalJSON() ([]byte, error) {
	if strings.HasSuffix(string(n), "NaN") || strings.HasSuffix(string(n), "Inf") {
		return json.Marshal(string(n))
	}
	return []byte(n), nil
}

// value is one element: a number, or a text such as 1-2.5j for complex ones.
func value(k tensor.Kind, b []byte) any {
	if _, _, ok := k.Complex(b); ok {
		return k.Text(b)
	}
	return number(k.Text(b))
}

func writeTensor(w io.Writer, t *hdfsckpt.Tensor, values []any, s hdfsckpt.Summary) error {
	out := bufio.NewWriter(w)
	if values != nil {
		for _, v := range values {
			if text, ok := v.(string); ok && t.Kind == tensor.StringKind {
				v = strconv.Quote(text)
			}
			fmt.Fprintln(out, v)
		}
		return out.Flush()
	}
	fmt.Fprintf(out, "%s  %s %v, %d elements\n", t.Name, t.Kind, t.Shape, s.Elements)
	if s.Elements == 0 {
		return out.Flush()
	}
	fmt.Fprintf(out, "min %g, mean %g, max %g, norm %g; NaN %d, infinite %d\n", s.Min, s.Mean, s.Max, s.Norm, s.NaN, s.Inf)
	most := int64(1)
	for _, n := range s.Histogram {
		most = max(most, n)
	}
	for i, n := range s.Histogram {
		from := s.Min + (s.Max-s.Min)*float64(i)/float64(len(s.Histogram))
		fmt.Fprintf(out, "%12.4g  %s %d\n", from, strings.Repeat("#", int(n*50/most)), n)
		if s.Max == s.Min {
			break // one value
		}
	}
	return out.Flush()
}
