package ckpt

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/tensor"
)

type catOptions struct {
	cli.Output
	values bool
}

func newCatCommand() *cobra.Command {
	o := &catOptions{}
	cmd := &cobra.Command{
		Use:   "cat URI|JOB STEP TENSOR",
		Short: "show a tensor: a summary of its numbers, or all of them",
		Long: `Cat shows the smallest, largest and mean value of a tensor, how many are no
finite numbers, and how the others are spread; of complex numbers, their
absolute values. With --values it prints all of them, one a line, as they lie in
memory: row by row. Tensors of strings are always printed so.`,
		Example: `  yarn-submit ckpt cat mnist 400 dense/kernel
  yarn-submit ckpt cat ./ck 400 dense/bias --values --output json`,
		Args: cli.Between(3, 3, "URI|JOB STEP TENSOR"),
		RunE: func(cmd *cobra.Command, args []string) error { return runCat(cmd, o, args[0], args[1], args[2]) },
	}
	cmd.Flags().BoolVar(&o.values, "values", false, "print all values")
	cmd.ValidArgsFunction = completeCheckpoints(1)
	o.Add(cmd)
	return cmd
}

// catTensor is the JSON of ckpt cat.
type catTensor struct {
	inspect.Values
	All *elements `json:"values,omitempty"`
}

func runCat(cmd *cobra.Command, o *catOptions, ref, which, name string) error {
	return chosen(cmd, ref, which, func(c *checkpoints.Chosen) error {
		t, err := format.OpenTensors(cmd.Context(), c.Store, c.Checkpoint)
		if err != nil {
			return err
		}
		defer t.Close()
		x := t.Find(name)
		if x == nil {
			return client.Usagef("there is no tensor %s in %s: see yarn-submit ckpt show %s %s", name, c.Name, ref, which)
		}
		shown, err := readTensor(cmd.Context(), x, o.values, cli.Bar(cmd, name))
		cli.EraseBar(cmd)
		if err != nil {
			return err
		}
		if !o.JSON() {
			return writeTensor(cmd.OutOrStdout(), shown)
		}
		return cli.WriteJSON(cmd.OutOrStdout(), shown)
	})
}

// elements are those of a tensor, which may be very many: they are kept as bytes.
type elements struct {
	kind    tensor.Kind
	b       []byte
	strings []string // of a tensor of strings
}

// readTensor reads a tensor; strings have no summary, and always their values.
func readTensor(ctx context.Context, t *format.Tensor, wanted bool, progress inspect.Progress) (catTensor, error) {
	if t.Kind == tensor.StringKind {
		list, err := t.Strings()
		none := 0.0
		return catTensor{inspect.Values{
			Name: t.Name, DType: t.Kind, Shape: append([]int64{}, t.Shape...), Elements: int64(len(list)), Mean: &none, Norm: &none,
		}, &elements{kind: t.Kind, strings: list}}, err
	}
	summary, err := inspect.Summarise(ctx, t, histogramBins, math.MaxInt64, progress)
	if err != nil || !wanted {
		return catTensor{summary, nil}, err
	}
	b, err := t.Read()
	return catTensor{summary, &elements{kind: t.Kind, b: b}}, err
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

// orInf is a number as text; what is too large for one is null in JSON.
func orInf(v *float64) string {
	if v == nil {
		return "infinite"
	}
	return strconv.FormatFloat(*v, 'g', 6, 64)
}

func writeTensor(w io.Writer, s catTensor) error {
	out := bufio.NewWriter(w)
	if s.All != nil {
		s.All.each(func(text string, _ bool) {
			if s.DType == tensor.StringKind {
				text = strconv.Quote(text)
			}
			_, _ = out.WriteString(text) // Flush tells of errors
			_ = out.WriteByte('\n')
		})
		return out.Flush()
	}
	writeValues(out, s.Values)
	return out.Flush()
}
