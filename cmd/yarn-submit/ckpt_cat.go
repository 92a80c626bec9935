package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/hdfsckpt/format"
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
		Example: `  yarn-submit ckpt cat mnist 400 dense/kernel
  yarn-submit ckpt cat ./ck 400 dense/bias --values --output json`,
		Args: between(3, 3, "URI|JOB STEP TENSOR"),
		RunE: func(cmd *cobra.Command, args []string) error { return runCkptCat(cmd, o, args[0], args[1], args[2]) },
	}
	cmd.Flags().BoolVar(&o.values, "values", false, "print all values")
	cmd.ValidArgsFunction = completeCheckpoints(1)
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
	Values    *elements   `json:"values,omitempty"`
}

func runCkptCat(cmd *cobra.Command, o *ckptCatOptions, ref, which, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	return listed(cmd, ref, func(d checkpoints.Directory, list []format.Checkpoint) error {
		c, err := checkpoints.Choose(list, d.Store.URI(), which)
		if err != nil {
			return err
		}
		t, err := format.OpenTensors(cmd.Context(), d.Store, c)
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

// elements are those of a tensor, which may be very many: they are kept as bytes.
type elements struct {
	kind    tensor.Kind
	b       []byte
	strings []string // of a tensor of strings
}

// readTensor reads a tensor; strings have no summary, and always their values.
func readTensor(t *format.Tensor, wanted bool) (*elements, tensor.Summary, error) {
	if t.Kind == tensor.StringKind {
		list, err := t.Strings()
		return &elements{kind: t.Kind, strings: list}, tensor.Summary{Elements: int64(len(list))}, err
	}
	b, err := t.Read()
	if err != nil {
		return nil, tensor.Summary{}, err
	}
	summary, err := tensor.Summarise(t.Kind, b, histogramBins)
	if err != nil || !wanted {
		return nil, summary, err
	}
	return &elements{kind: t.Kind, b: b}, summary, nil
}

// each calls f with each element as text, and whether that is a number in JSON.
func (e *elements) each(f func(text string, number bool)) {
	for _, s := range e.strings {
		f(s, false)
	}
	width := e.kind.Size()
	_, _, isComplex := e.kind.Complex(make([]byte, 16))
	for at := 0; at < len(e.b); at += width {
		text := e.kind.Text(e.b[at:])
		f(text, !isComplex && !strings.HasSuffix(text, "NaN") && !strings.HasSuffix(text, "Inf"))
	}
}

// MarshalJSON writes numbers with all of their digits, and as texts what JSON
// has no number for.
func (e *elements) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	var err error
	e.each(func(text string, number bool) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if number {
			out = append(out, text...)
			return
		}
		quoted, wrong := json.Marshal(text)
		err = errors.Join(err, wrong)
		out = append(out, quoted...)
	})
	return append(out, ']'), err
}

func writeTensor(w io.Writer, t *format.Tensor, values *elements, s tensor.Summary) error {
	out := bufio.NewWriter(w)
	if values != nil {
		values.each(func(text string, _ bool) {
			if t.Kind == tensor.StringKind {
				text = strconv.Quote(text)
			}
			_, _ = out.WriteString(text) // Flush tells of errors
			_ = out.WriteByte('\n')
		})
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
