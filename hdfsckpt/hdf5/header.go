package hdf5

import (
	"bytes"
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
	const (
		prefix1 = 16
		prefix2 = 6 + 16 + 4 + 8 // at most
	)
	begin, err := f.read("the header of an object", at, min(prefix1, f.size-min(at, f.size)))
	if err != nil {
		return nil, err
	}
	var all []message
	var more []continuation
	if !bytes.HasPrefix(begin, []byte("OHDR")) {
		s := fields{b: begin}
		version := s.uint(1)
		s.bytes(7)
		size := s.uint(4)
		if s.short || version != 1 {
			return nil, fmt.Errorf("at byte %d there is no header of an object", at)
		}
		more = []continuation{{at + prefix1, size}}
		for i := 0; i < len(more); i++ {
			b, err := f.read("the header of an object", more[i].at, more[i].size)
			if err != nil {
				return nil, err
			}
			if err := split1(b, &all, &more); err != nil {
				return nil, fmt.Errorf("the header of an object at byte %d: %w", at, err)
			}
		}
		return all, nil
	}
	s, err := f.structure("header of an object", "OHDR", at, min(prefix2, f.size-at))
	if err != nil {
		return nil, err
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
	if s.short {
		return nil, fmt.Errorf("the header of an object at byte %d is cut off", at)
	}
	if version != 2 {
		return nil, unsupported("the header of an object at byte %d has the version %d", at, version)
	}
	ordered := flags&(1<<2) != 0
	b, err := f.read("the header of an object", at+4+uint64(whole-len(s.b)), size)
	if err == nil {
		err = split2(b, ordered, &all, &more)
	}
	for i := 0; err == nil && i < len(more); i++ {
		const around = 8 // signature and checksum
		if more[i].size < around {
			err = fmt.Errorf("it goes on in %d bytes", more[i].size)
			break
		}
		var s *fields
		if s, err = f.structure("continuation of an object's header", "OCHK", more[i].at, more[i].size); err == nil {
			err = split2(s.b[:len(s.b)-4], ordered, &all, &more)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the header of an object at byte %d: %w", at, err)
	}
	return all, nil
}

// continuation is where more messages of a header are.
type continuation struct{ at, size uint64 }

// split1 takes the messages of a header of version 1 apart.
func split1(b []byte, all *[]message, more *[]continuation) error {
	s := fields{b: b}
	for len(s.b) >= 8 {
		m := message{kind: s.uint(2)}
		size := s.uint(2)
		m.shared = s.uint(1)&2 != 0
		s.bytes(3)
		m.data = s.bytes(size)
		if err := add(m, s.short, all, more); err != nil {
			return err
		}
	}
	return nil
}

// split2 takes those of version 2 apart. Fewer bytes than a message has are a gap.
func split2(b []byte, ordered bool, all *[]message, more *[]continuation) error {
	s := fields{b: b}
	least := 4
	if ordered {
		least += 2
	}
	for len(s.b) >= least {
		m := message{kind: s.uint(1)}
		size := s.uint(2)
		m.shared = s.uint(1)&2 != 0
		if ordered {
			s.uint(2)
		}
		m.data = s.bytes(size)
		if err := add(m, s.short, all, more); err != nil {
			return err
		}
	}
	return nil
}

func add(m message, short bool, all *[]message, more *[]continuation) error {
	if short {
		return fmt.Errorf("a message of it, of the type %d, is cut off", m.kind)
	}
	if m.kind == msgContinuation {
		s := fields{b: m.data}
		c := continuation{s.address(), s.uint(8)}
		if s.short {
			return fmt.Errorf("it does not say where it goes on")
		}
		*more = append(*more, c)
	}
	*all = append(*all, m)
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
