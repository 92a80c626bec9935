package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tensor"
)

// Details is the JSON of ckpt show.
type Details struct {
	Checkpoint
	Files   []File   `json:"files"`
	Tensors []Tensor `json:"tensors"` // the largest first
}

// File is a file of a checkpoint in JSON.
type File struct {
	Name   string        `json:"name"`
	Bytes  int64         `json:"bytes"`
	Time   Time          `json:"time"`
	CRC32C *string       `json:"crc32c"`           // in hex, by the manifest; null if it is not sealed
	Blocks []store.Block `json:"blocks,omitempty"` // on HDFS, if they were asked for
}

// Files returns the files of a checkpoint, with their checksums where it is sealed.
func Files(c *format.Checkpoint) []File {
	sums := map[string]manifest.Sum{}
	if c.Manifest != nil {
		for _, s := range c.Manifest.Files {
			sums[s.Name] = s
		}
	}
	files := make([]File, len(c.Files))
	for i, f := range c.Files {
		files[i] = File{Name: f.Name, Bytes: f.Size, Time: Time{f.ModTime}}
		if s, ok := sums[f.Name]; ok {
			text := fmt.Sprintf("%08x", s.CRC32C)
			files[i].CRC32C = &text
		}
	}
	return files
}

// Locate finds the blocks of files, and the hosts that have them. progress is told of how many
// files it has; it may be nil.
func Locate(ctx context.Context, s store.Store, files []File, progress func(done, total int64)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	var done atomic.Int64
	for i := range files {
		group.Go(func() (err error) {
			files[i].Blocks, err = store.Locate(ctx, s, files[i].Name)
			if n := done.Add(1); progress != nil {
				progress(n, int64(len(files)))
			}
			return err
		})
	}
	return group.Wait()
}

// Tensor is a tensor of a checkpoint in JSON.
type Tensor struct {
	Name   string      `json:"name"`
	DType  tensor.Kind `json:"dtype"`
	Shape  []int64     `json:"shape"`
	Bytes  int64       `json:"bytes"`
	File   string      `json:"file"`   // none for one that lies in several
	Pieces int         `json:"pieces"` // 1, or in how many it was cut
}

// DescribeTensors returns tensors for JSON output, the largest first.
func DescribeTensors(list []*format.Tensor) []Tensor {
	all := make([]Tensor, len(list))
	for i, x := range list {
		all[i] = Tensor{x.Name, x.Kind, append([]int64{}, x.Shape...), x.Bytes, x.File, x.Pieces}
	}
	slices.SortStableFunc(all, func(a, b Tensor) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all
}

// Like returns what reports whether a name is like a pattern: has it in it, or with * (any
// text) and ? (one character) is as it says. Unlike in names of files, * goes over slashes
// and dots, which have no meaning here. What it takes does not grow with the stars of a pattern,
// which may come from anybody who looks at a page.
func Like(pattern string) func(name string) bool {
	if !strings.ContainsAny(pattern, "*?") {
		return func(name string) bool { return strings.Contains(name, pattern) }
	}
	parts := slices.DeleteFunc(strings.Split(pattern, "*"), func(s string) bool { return s == "" })
	open, closed := strings.HasPrefix(pattern, "*"), !strings.HasSuffix(pattern, "*")
	return func(name string) bool {
		rest, anywhere := name, open
		for i, part := range parts {
			next, found := after(rest, part, anywhere, closed && i == len(parts)-1)
			if !found {
				return false
			}
			rest, anywhere = next, true
		}
		return rest == "" || !closed
	}
}

// after returns what follows a part of a pattern in a text: at its beginning, or anywhere, where it
// is first, or if it has to be at the end there.
func after(text, part string, anywhere, end bool) (rest string, found bool) {
	for {
		if rest, found = begins(text, part); found && (rest == "" || !end) {
			return rest, true
		}
		if !anywhere || text == "" {
			return "", false
		}
		_, width := utf8.DecodeRuneInString(text)
		text = text[width:]
	}
}

// begins reports whether a text begins as a part of a pattern says, and returns the rest of it.
func begins(text, part string) (rest string, ok bool) {
	for len(part) > 0 {
		wanted, n := utf8.DecodeRuneInString(part)
		_, width := utf8.DecodeRuneInString(text)
		if width == 0 || wanted != '?' && text[:width] != part[:n] {
			return "", false
		}
		text, part = text[width:], part[n:]
	}
	return text, true
}
