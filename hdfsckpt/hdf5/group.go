package hdf5

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// walk finds the datasets of the object at an address, which is called path. An object that
// has several names is found by the first one only.
func (f *file) walk(path string, at uint64) error {
	f.seen[at] = true
	all, err := f.header(at)
	if err != nil {
		return within(path, err)
	}
	if find(all, msgLayout) != nil {
		f.found = append(f.found, f.dataset(path, all))
		return nil
	}
	link := func(name string, at uint64) error {
		switch {
		case f.seen[at]:
			return nil
		case name == "" || strings.Contains(name, "/"):
			return within(path, fmt.Errorf("it has a member called %q", name))
		case len(path)+1+len(name) > mostPath:
			return within(path, unsupported("the name of a member is longer than %d bytes with those of its groups", mostPath))
		}
		if path != "" {
			name = path + "/" + name
		}
		if err := f.take(uint64(len(name))); err != nil {
			return err
		}
		return f.walk(name, at)
	}
	if m := find(all, msgSymbolTable); m != nil {
		return f.symbolTable(path, m.data, link)
	}
	return f.links(path, all, link)
}

// links calls link for what the messages of a group's header link to, sorted by name.
func (f *file) links(path string, all []message, link func(name string, at uint64) error) (err error) {
	var links []named
	for _, m := range all {
		switch m.kind {
		case msgLink:
			links, err = follow(links, m.data)
		case msgLinkInfo:
			links, err = f.denseLinks(links, m.data)
		}
		if err != nil {
			return within(path, err)
		}
	}
	slices.SortFunc(links, func(a, b named) int { return strings.Compare(a.name, b.name) })
	for _, n := range links {
		if err := link(n.name, n.at); err != nil {
			return err
		}
	}
	return nil
}

// named is an object with the name that a link gives it.
type named struct {
	name string
	at   uint64
}

// within says which object an error is of. That of a member says so already.
func within(path string, err error) error {
	if path == "" {
		return fmt.Errorf("the root group: %w", err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// symbolTable calls link for the members of a group that has a symbol table (IV.A.2.r).
func (f *file) symbolTable(path string, b []byte, link func(name string, at uint64) error) error {
	s := fields{b: b}
	tree, heap := s.address(), s.address()
	if s.short {
		return within(path, errors.New("its symbol table is cut off"))
	}
	names, err := f.localHeap(heap)
	if err != nil {
		return within(path, err)
	}
	return f.symbols(path, tree, -1, names, link)
}

// localHeap reads the names of a symbol table's members (III.D).
func (f *file) localHeap(at uint64) ([]byte, error) {
	s, err := f.structure("heap of names", "HEAP", at, 32)
	if err != nil {
		return nil, err
	}
	version := s.uint(1)
	s.bytes(3)
	size := s.uint(8)
	s.uint(8)
	data := s.address()
	if version != 0 {
		return nil, unsupported("a heap of names has the version %d", version)
	}
	return f.read("a heap of names", data, size)
}

const treeHead = 24 // of a node of a B-tree of version 1, in bytes

// tree reads the beginning of a node of a B-tree of version 1 (III.A.1), which must be of the
// level if that is not -1. It returns where the node goes on, its level, and how many children
// there are.
func (f *file) tree(at uint64, kind, level int) (begin uint64, of int, children uint64, err error) {
	s, err := f.structure("node of a B-tree", "TREE", at, treeHead)
	if err != nil {
		return 0, 0, 0, err
	}
	gotKind := int(s.uint(1))
	of = int(s.uint(1))
	children = s.uint(2)
	if gotKind != kind || level >= 0 && of != level {
		return 0, 0, 0, fmt.Errorf("at byte %d there is a node of another B-tree, or of another level", at)
	}
	return at + treeHead, of, children, nil
}

// symbols calls link for each member of a symbol table that is an object of this file.
func (f *file) symbols(path string, at uint64, level int, names []byte, link func(name string, at uint64) error) error {
	begin, level, children, err := f.tree(at, 0, level)
	if err != nil {
		return within(path, err)
	}
	const pair = 8 + addressSize // a key, and a child
	b, err := f.read("a node of a B-tree", begin, children*pair)
	if err != nil {
		return within(path, err)
	}
	s := fields{b: b}
	for range children {
		s.uint(8)
		child := s.address()
		if level > 0 {
			err = f.symbols(path, child, level-1, names, link)
		} else {
			err = f.symbolNode(path, child, names, link)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// symbolNode does so for the members in one node (III.B, III.C).
func (f *file) symbolNode(path string, at uint64, names []byte, link func(name string, at uint64) error) error {
	const (
		head  = 8
		entry = 2*addressSize + 4 + 4 + 16
		// symbolic is the cache type of a link to a name.
		symbolic = 2
	)
	s, err := f.structure("node of a symbol table", "SNOD", at, head)
	if err != nil {
		return within(path, err)
	}
	version := s.uint(1)
	s.uint(1)
	n := s.uint(2)
	if version != 1 {
		return within(path, unsupported("a node of its symbol table has the version %d", version))
	}
	b, err := f.read("a node of a symbol table", at+head, n*entry)
	if err != nil {
		return within(path, err)
	}
	s = &fields{b: b}
	for range n {
		nameAt, object, cache := s.uint(8), s.address(), s.uint(4)
		s.bytes(4 + 16)
		if cache == symbolic {
			continue
		}
		if nameAt > uint64(len(names)) {
			return within(path, errors.New("the name of a member is beyond its heap"))
		}
		heap := fields{b: names[nameAt:min(uint64(len(names)), nameAt+mostPath+1)]}
		name := heap.text()
		switch {
		case heap.short && uint64(len(names))-nameAt > mostPath:
			return within(path, unsupported("the name of a member is longer than %d bytes", mostPath))
		case heap.short:
			return within(path, errors.New("the name of a member does not end"))
		}
		if err := link(name, object); err != nil {
			return err
		}
	}
	return nil
}

// follow adds to links what a link message names (IV.A.2.g), if it is an object of this file.
func follow(links []named, b []byte) ([]named, error) {
	s := fields{b: b}
	version, flags, kind := s.uint(1), s.uint(1), uint64(0)
	if flags&(1<<3) != 0 {
		kind = s.uint(1)
	}
	if flags&(1<<2) != 0 {
		s.uint(8) // when it was made
	}
	if flags&(1<<4) != 0 {
		s.uint(1) // character set
	}
	name := s.bytes(s.uint(1 << (flags & 3)))
	switch {
	case version != 1:
		return nil, unsupported("a link has the version %d", version)
	case kind != 0:
		return links, nil
	}
	at := s.address()
	if s.short {
		return nil, errors.New("a link is cut off")
	}
	return append(links, named{string(name), at}), nil
}
