package hdf5

import (
	"bytes"
	"errors"
	"fmt"
)

// Types of messages in object headers (IV.A.2).
const (
	msgDataspace    = 0x01
	msgLinkInfo     = 0x02
	msgDatatype     = 0x03
	msgLink         = 0x06
	msgExternal     = 0x07
	msgLayout       = 0x08
	msgFilters      = 0x0b
	msgAttribute    = 0x0c
	msgContinuation = 0x10
	msgSymbolTable  = 0x11
)

// message is one of an object header.
type message struct {
	kind   uint64
	shared bool // it stands elsewhere
	data   []byte
}

// header reads the messages of the object at an address (IV.A.1), with those of its
// continuations.
func (f *file) header(at uint64) ([]message, error) {
	const prefix = 16
	begin, err := f.read("the header of an object", at, min(prefix, f.size-min(at, f.size)))
	if err != nil {
		return nil, err
	}
	m := &messages{}
	if bytes.HasPrefix(begin, []byte("OHDR")) {
		err = f.header2(m, at)
	} else {
		err = f.header1(m, at+prefix, begin)
	}
	if err != nil {
		return nil, fmt.Errorf("the header of an object at byte %d: %w", at, err)
	}
	return m.all, nil
}

// header1 reads a header of version 1, of which prefix is known already.
func (f *file) header1(m *messages, at uint64, prefix []byte) error {
	s := fields{b: prefix}
	version := s.uint(1)
	s.bytes(7)
	size := s.uint(4)
	if s.short || version != 1 {
		return errors.New("there is none")
	}
	m.more = []continuation{{at, size}}
	for i := 0; i < len(m.more); i++ {
		b, err := f.read("a part of it", m.more[i].at, m.more[i].size)
		if err == nil {
			err = m.split1(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// header2 reads a header of version 2.
func (f *file) header2(m *messages, at uint64) error {
	const (
		most      = 4 + 2 + 16 + 4 + 8 // bytes before the messages
		signature = 4
		around    = 8 // a continuation: signature and checksum
	)
	s, err := f.structure("header of an object", "OHDR", at, min(most, f.size-at))
	if err != nil {
		return err
	}
	whole := len(s.b)
	version, flags := s.uint(1), s.uint(1)
	if flags&(1<<5) != 0 {
		s.bytes(16) // times
	}
	if flags&(1<<4) != 0 {
		s.bytes(4) // when attributes move
	}
	size := s.uint(1 << (flags & 3))
	switch {
	case s.short:
		return errors.New("it is cut off")
	case version != 2:
		return unsupported("it has the version %d", version)
	}
	m.ordered = flags&(1<<2) != 0
	b, err := f.read("a part of it", at+signature+uint64(whole-len(s.b)), size)
	if err == nil {
		err = m.split2(b)
	}
	for i := 0; err == nil && i < len(m.more); i++ {
		if m.more[i].size < around {
			return fmt.Errorf("it goes on in %d bytes", m.more[i].size)
		}
		var s *fields
		if s, err = f.structure("continuation of a header", "OCHK", m.more[i].at, m.more[i].size); err == nil {
			err = m.split2(s.b[:len(s.b)-(around-signature)])
		}
	}
	return err
}

// messages are those of a header.
type messages struct {
	ordered bool // each says when it was made
	all     []message
	more    []continuation
}

// continuation is where more messages of a header are.
type continuation struct{ at, size uint64 }

// split1 takes the messages of a header of version 1 apart.
func (m *messages) split1(b []byte) error {
	s := fields{b: b}
	for len(s.b) >= 8 {
		one := message{kind: s.uint(2)}
		size := s.uint(2)
		one.shared = s.uint(1)&2 != 0
		s.bytes(3)
		one.data = s.bytes(size)
		if err := m.add(one, s.short); err != nil {
			return err
		}
	}
	return nil
}

// split2 takes those of version 2 apart. Fewer bytes than a message has are a gap.
func (m *messages) split2(b []byte) error {
	s := fields{b: b}
	least := 4
	if m.ordered {
		least += 2
	}
	for len(s.b) >= least {
		one := message{kind: s.uint(1)}
		size := s.uint(2)
		one.shared = s.uint(1)&2 != 0
		if m.ordered {
			s.uint(2)
		}
		one.data = s.bytes(size)
		if err := m.add(one, s.short); err != nil {
			return err
		}
	}
	return nil
}

func (m *messages) add(one message, short bool) error {
	if short {
		return fmt.Errorf("a message of it, of the type %d, is cut off", one.kind)
	}
	if one.kind == msgContinuation {
		s := fields{b: one.data}
		c := continuation{s.address(), s.uint(8)}
		if s.short {
			return errors.New("it does not say where it goes on")
		}
		m.more = append(m.more, c)
	}
	m.all = append(m.all, one)
	return nil
}

// find returns the first message of a type.
func find(all []message, kind uint64) *message {
	for i := range all {
		if all[i].kind == kind {
			return &all[i]
		}
	}
	return nil
}
