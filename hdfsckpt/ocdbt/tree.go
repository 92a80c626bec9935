package ocdbt

import (
	"fmt"
	"math"
)

// Entry is a key with its value.
type Entry struct {
	Key string
	// Value is where the value lies, or, where Inline is not nil, the node that holds it.
	Value  Ref
	Inline []byte
}

// Visitor is called for all that a store consists of.
type Visitor struct {
	// Node is called before a node is read; nil if that is of no interest.
	Node func(Ref)
	// Entry is called for each key, in order. An error ends the walk.
	Entry func(Entry) error
}

const nodeMagic = 0x0cdb20de

// Walk reads the tree, one node after the other, and none of the values in data files.
func (s *Store) Walk(v Visitor) error {
	if s.root == nil {
		return nil
	}
	w := &walk{s: s, visit: v, seen: map[Ref]bool{}}
	return w.node(s.root, s.height, "")
}

type walk struct {
	s      *Store
	visit  Visitor
	budget budget
	keys   int64
	// seen are the nodes that were read. That no node is read twice, and that keys grow, is
	// why a walk ends.
	seen map[Ref]bool
	last string // key
}

// node reads a node. All keys in it begin with prefix.
func (w *walk) node(p *place, height byte, prefix string) error {
	at := Ref{p.file.name, p.offset, p.length}
	err := w.read(p, at, height, prefix)
	if _, named := err.(nodeError); err != nil && !named {
		return nodeError{fmt.Errorf("%s, at byte %d: %w", at.File, at.Offset, err)}
	}
	return err
}

// nodeError says which node it is about.
type nodeError struct{ error }

func (e nodeError) Unwrap() error { return e.error }

func (w *walk) read(p *place, at Ref, height byte, prefix string) error {
	if w.seen[at] {
		return unknown("the node is in the tree twice")
	}
	w.seen[at] = true
	if w.visit.Node != nil {
		w.visit.Node(at)
	}
	if w.budget.read += at.Length; w.budget.read > w.s.TreeBytes {
		return unknown("the tree has more than the %d bytes that the manifest says", w.s.TreeBytes)
	}
	f, err := w.s.open(at.File)
	if err != nil {
		return err
	}
	frame, err := read(f, at.Offset, at.Length)
	if err != nil {
		return err
	}
	body, err := unwrap(frame, nodeMagic, &w.budget)
	if err != nil {
		return err
	}
	c := &cursor{b: body}
	if h := c.byte(); h != height && c.err == nil {
		return unknown("the node has the height %d instead of %d", h, height)
	}
	files, err := c.files(p.file.base, &w.budget)
	if err != nil {
		return err
	}
	n := c.count()
	if c.err != nil {
		return c.err
	}
	if n == 0 {
		return unknown("the node is empty")
	}
	if err := w.budget.spend(int64(n) * entrySize); err != nil {
		return err
	}
	if height > 0 {
		return w.children(c, n, files, height, prefix)
	}
	return w.leaf(c, n, files, at, prefix)
}

// readKeys reads the keys of n entries: with inner also how much of each all keys below begin with.
func (w *walk) readKeys(c *cursor, n int, prefix string, inner bool) (keys []string, shared []uint64, err error) {
	common := append([]uint64{0}, c.column(n-1, longest)...)
	suffixes := c.column(n, longest)
	if inner {
		shared = c.column(n, longest)
	}
	if c.err != nil {
		return nil, nil, c.err
	}
	keys = make([]string, n)
	former := prefix
	for i := range keys {
		text := c.bytes(suffixes[i])
		if c.err != nil {
			return nil, nil, c.err
		}
		have := uint64(len(former) - len(prefix))
		size := common[i] + suffixes[i]
		if common[i] > have || size+uint64(len(prefix)) > longest || inner && shared[i] > size {
			return nil, nil, unknown("a key has %d and %d bytes", common[i], suffixes[i])
		}
		if err := w.budget.spend(int64(size) + int64(len(prefix))); err != nil {
			return nil, nil, err
		}
		keys[i] = former[:len(prefix)+int(common[i])] + string(text)
		former = keys[i]
	}
	return keys, shared, nil
}

func (w *walk) children(c *cursor, n int, files []dataFile, height byte, prefix string) error {
	keys, shared, err := w.readKeys(c, n, prefix, true)
	if err != nil {
		return err
	}
	places := c.places(n, files, false)
	if c.err != nil {
		return c.err
	}
	for i, p := range places {
		if err := w.node(p, height-1, keys[i][:len(prefix)+int(shared[i])]); err != nil {
			return err
		}
	}
	return nil
}

// mostInline is how long a value in a node may be (kMaxInlineValueLength in
// tensorstore/kvstore/ocdbt/format/config.h).
const mostInline = 1 << 20

func (w *walk) leaf(c *cursor, n int, files []dataFile, at Ref, prefix string) error {
	keys, _, err := w.readKeys(c, n, prefix, false)
	if err != nil {
		return err
	}
	lengths, kinds := c.column(n, math.MaxInt64), c.bytes(uint64(n))
	indirect := 0
	for i, k := range kinds {
		switch {
		case k > 1:
			c.fail(unknown("a value is stored in a way that is not known: %d", k))
		case k == 1:
			indirect++
		case lengths != nil && lengths[i] > mostInline:
			c.fail(unknown("a value in a node has %d bytes", lengths[i]))
		}
	}
	var ids, offsets []uint64
	if indirect > 0 {
		ids, offsets = c.ids(indirect, files), c.column(indirect, math.MaxInt64)
	}
	if c.err != nil {
		return c.err
	}
	for i, key := range keys {
		if w.keys > 0 && key <= w.last {
			return unknown("the key %q comes after %q", key, w.last)
		}
		w.last = key
		if w.keys++; w.keys > w.s.Keys {
			return unknown("the tree has more than the %d keys that the manifest says", w.s.Keys)
		}
		e := Entry{Key: key, Value: at}
		if kinds[i] == 0 {
			e.Inline = c.bytes(lengths[i])
		} else {
			e.Value = Ref{files[ids[0]].name, int64(offsets[0]), int64(lengths[i])}
			if !isRange(offsets[0], lengths[i]) {
				return unknown("the value of %q has %d bytes from %d on", key, lengths[i], offsets[0])
			}
			if err := files[ids[0]].check(); err != nil {
				return err
			}
			ids, offsets = ids[1:], offsets[1:]
		}
		if c.err != nil {
			return c.err
		}
		if err := w.visit.Entry(e); err != nil {
			return err
		}
	}
	return nil
}
