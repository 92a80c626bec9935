// Package zipdir reads the directories of ZIP archives in bounded memory. archive/zip alone
// takes as much as a directory claims to have, and reads on behind its end.
//
// An archive ends with a record that says how long its directory is and how many members it
// names (APPNOTE.TXT 4.3.16); where that does not fit, another one before it does (4.3.14),
// which is found by a third, between both (4.3.15).
package zipdir

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"

	"holdfast/hdfsckpt/limit"
)

const (
	end        = "PK\x05\x06"
	endSize    = 22
	end64      = "PK\x06\x06"
	end64Size  = 56
	locator    = "PK\x06\x07"
	locatorLen = 20
	// comment is how long the comment behind the end may be, in bytes.
	comment = 64 << 10
	// leastEntry is how many bytes an entry of a directory has at least.
	leastEntry = 46
)

const (
	// Most is how large a directory may be that is read, in bytes.
	Most = 64 << 20
	// perByte bounds the memory that each byte of a directory takes: an entry of fifty takes four
	// hundred.
	perByte = 10
	free    = 256 << 10
	// around is how much is read of an archive besides its directory, in bytes.
	around = 192 << 10
)

// Memory returns how many bytes of memory Open takes at most. It reads the end of the archive.
func Memory(r io.ReaderAt, size int64) (int64, error) {
	d, err := sizeOf(r, size)
	return free + perByte*d, err
}

// Open reads the directory of an archive. One that is larger than Most, or goes on behind its
// end, is limit.Exceeded.
func Open(r io.ReaderAt, size int64) (*zip.Reader, error) {
	d, err := sizeOf(r, size)
	if err != nil {
		return nil, err
	}
	once := &bounded{r: r, left: d + around, directory: d}
	z, err := zip.NewReader(once, size)
	if once.err != nil {
		return nil, once.err
	}
	once.done = true
	return z, err
}

// sizeOf returns how long the directory is.
func sizeOf(r io.ReaderAt, size int64) (int64, error) {
	tail := make([]byte, min(size, endSize+comment))
	from := size - int64(len(tail))
	if n, err := r.ReadAt(tail, from); n < len(tail) {
		return 0, noEOF(err)
	}
	at := len(tail) - endSize
	for at >= 0 && string(tail[at:at+4]) != end {
		at--
	}
	if at < 0 {
		return 0, zip.ErrFormat
	}
	last := tail[at:]
	members, length := uint64(binary.LittleEndian.Uint16(last[10:])), uint64(binary.LittleEndian.Uint32(last[12:]))
	if offset := binary.LittleEndian.Uint32(last[16:]); members == 1<<16-1 || length == 1<<16-1 || offset == 1<<32-1 {
		// As archive/zip decides that there is another record.
		m, l, ok, err := sizeOf64(r, from+int64(at))
		if err != nil {
			return 0, err
		}
		if ok {
			members, length = m, l
		}
	}
	switch {
	case length > uint64(size):
		return 0, fmt.Errorf("its directory has %d bytes, and all of it %d: %w", length, size, zip.ErrFormat)
	case members > length/leastEntry && members != 1<<16-1:
		return 0, fmt.Errorf("its directory names %d members in %d bytes: %w", members, length, zip.ErrFormat)
	case length > Most:
		return 0, limit.Exceeded("its directory has %d bytes, and up to %d are read", length, Most)
	}
	return int64(length), nil
}

// sizeOf64 reads the record of a large archive; ok is false if there is none.
func sizeOf64(r io.ReaderAt, last int64) (members, length uint64, ok bool, err error) {
	if last < locatorLen {
		return 0, 0, false, nil
	}
	b := make([]byte, locatorLen)
	if n, err := r.ReadAt(b, last-locatorLen); n < len(b) {
		return 0, 0, false, noEOF(err)
	}
	at := binary.LittleEndian.Uint64(b[8:])
	if string(b[:4]) != locator || at > uint64(last) {
		return 0, 0, false, nil
	}
	b = make([]byte, end64Size)
	if n, err := r.ReadAt(b, int64(at)); n < len(b) {
		return 0, 0, false, noEOF(err)
	}
	return binary.LittleEndian.Uint64(b[32:]), binary.LittleEndian.Uint64(b[40:]), string(b[:4]) == end64, nil
}

// bounded reads a bounded number of bytes until it is done.
type bounded struct {
	r               io.ReaderAt
	left, directory int64
	err             error
	done            bool // the members are read, by whatever many goroutines
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.done {
		return b.r.ReadAt(p, off)
	}
	if b.left -= int64(len(p)); b.left < 0 {
		b.err = limit.Exceeded("its directory goes on behind the %d bytes that it is said to have", b.directory)
		return 0, b.err
	}
	return b.r.ReadAt(p, off)
}

// noEOF is the error of a file that became shorter while it was read.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
